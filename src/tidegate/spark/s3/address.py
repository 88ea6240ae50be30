"""Where a directory on S3 is: the store, the bucket and the key, read from a URL and environment.

Three clients use one checkpoint: pyarrow for data, botocore for commits, and Hadoop's S3A for
Spark's own logs. Each has other defaults, so what they must agree on is resolved here.
"""

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from tidegate.errors import AskedWrongly
from tidegate.spark.state.location import refuse_credentials

SCHEMES = ("s3", "s3a")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Variables of the environment, those that come first first."""
ONE_REQUEST = "allow_delayed_open"
"""pyarrow's option to upload a small object by one request instead of three. 18 has none."""


def is_s3(url: str) -> bool:
    """Whether this is the URL of an object store by S3's protocol."""
    return url.partition("://")[0] in SCHEMES and "://" in url


@dataclass(frozen=True, slots=True)
class Address:
    """A directory on a store that speaks S3's protocol."""

    bucket: str
    key: str
    """The directory in the bucket, without a slash at either end; empty for the whole bucket."""
    endpoint: str | None
    """The URL of the store; None for Amazon's own."""
    region: str | None
    options: tuple[tuple[str, str], ...] = ()
    """The options of the URL, for pyarrow."""

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read a URL such as `s3://bucket/ck?region=eu-west-1`."""
        head, _, query = url.partition("?")
        scheme, _, path = head.partition("://")
        bucket, _, key = path.partition("/")
        if scheme not in SCHEMES or not bucket:
            raise AskedWrongly(f"'{url}' does not name a bucket; expected s3://BUCKET/DIRECTORY")
        options = dict(parse_qsl(query))
        endpoint = _of_environment(ENDPOINTS)
        if given := options.get("endpoint_override"):
            endpoint = given if "://" in given else f"{options.get('scheme', 'https')}://{given}"
        if endpoint is not None:
            refuse_credentials(endpoint, "the endpoint")
        region = options.get("region") or _of_environment(REGIONS)
        return cls(bucket, key.strip("/"), endpoint, region, tuple(sorted(options.items())))

    @property
    def pyarrow_url(self) -> str:
        """The URL for pyarrow, which knows no `s3a` and would find another endpoint by itself."""
        options = dict(self.options)
        if self.endpoint is not None:
            scheme, _, host = self.endpoint.rstrip("/").partition("://")
            options |= {"endpoint_override": host, "scheme": scheme}
            # Without a region pyarrow would look the bucket up at Amazon's.
            options.setdefault("region", self.region or "us-east-1")
        options.setdefault(ONE_REQUEST, "true")
        return f"s3://{self.bucket}/{self.key}?{urlencode(sorted(options.items()))}"

    @property
    def spark_url(self) -> str:
        """The URL for Spark, whose own filesystem for S3 is `s3a`."""
        return f"s3a://{self.bucket}/{self.key}"

    def __str__(self) -> str:
        where = "" if self.endpoint is None else f" at {self.endpoint}"
        return f"the bucket '{self.bucket}'{where}"


def _of_environment(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
