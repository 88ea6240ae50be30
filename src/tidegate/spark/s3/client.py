"""Requests to a store by S3's protocol, and what its refusals mean in one sentence.

pyarrow cannot make a put depend on what is there, so the few files that decide who commits are
written by botocore. It finds credentials where all AWS tools do: environment, profile, or the role
of the machine.
"""

import functools
import time
from collections.abc import Mapping
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.s3.address import Address
from tidegate.spark.state.location import masked

_TRIES = 5
_PAUSE_S = 0.2
_CONNECT_S, _READ_S = 5, 30
_NO_BUCKET = {"NoSuchBucket", "InvalidBucketName"}
_BAD_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint"}
_DENIED = {"AccessDenied", "AllAccessDisabled", "Forbidden", "403"}
_MISSING = {"NoSuchKey", "404"}


class StoreRefusal(TidegateError):
    """The store answered a request with an error."""

    def __init__(self, sentence: str, status: int, code: str) -> None:
        super().__init__(sentence)
        self.status = status
        """The HTTP status of the answer."""
        self.code = code
        """The name of the error, such as `AccessDenied`."""

    @property
    def missing(self) -> bool:
        """Whether there is no such object; a bucket that is missing is another error."""
        return self.code in _MISSING

    @property
    def failed_condition(self) -> bool:
        """Whether a put was refused because its condition does not hold."""
        return self.status == 412


class BrokenOff(TidegateError):
    """An answer began, and its content broke off."""


class NotAllowed(StoreRefusal, AskedWrongly):
    """The store will answer like this until somebody changes a bucket, a key or a setting."""


def ask(address: Address, doing: str, operation: str, **given: Any) -> dict[str, Any]:
    """Send one request about the bucket, and return the answer.

    `doing` is what is tried, for errors: "writing ck/owner/0000000001.json". An answer with an
    error raises `StoreRefusal`. A content is read whole; if it breaks off, the request is repeated,
    because botocore repeats a request only until its answer begins.
    """
    for attempt in range(_TRIES):
        try:
            return _asked(address, doing, operation, given)
        except BrokenOff:
            if attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE_S * 2**attempt)
    raise AssertionError("the last try returns or raises")


def _asked(
    address: Address, doing: str, operation: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """One request, and its answer with all of its content."""
    client = _client(address.endpoint, address.region)
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectionError,
        HTTPClientError,
        NoCredentialsError,
        PartialCredentialsError,
    )

    named = masked(str(address))
    try:
        answer: dict[str, Any] = getattr(client, operation)(Bucket=address.bucket, **given)
    except ClientError as error:
        raise _refused(error.response, address, doing, masked(str(error))) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise AskedWrongly(
            f"there are no credentials for {named}; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or give the machine a role"
        ) from error
    except (ConnectionError, HTTPClientError) as error:
        raise TidegateError(
            f"no store answers for {named} ({masked(str(error))}); start it, or set "
            "AWS_ENDPOINT_URL to its address"
        ) from error
    except BotoCoreError as error:
        raise TidegateError(f"{doing} in {named} failed ({masked(str(error))})") from error
    if "Body" in answer:
        try:
            answer["Body"] = answer["Body"].read()
        except BotoCoreError as error:
            raise BrokenOff(
                f"the answer of {named} broke off while {doing} ({masked(str(error))}); see "
                "whether the store or the network to it is overloaded"
            ) from error
    return answer


@functools.lru_cache(maxsize=16)
def _client(endpoint: str | None, region: str | None) -> Any:
    """The client for a store; one for all buckets of it."""
    try:
        from botocore.config import Config
        from botocore.session import get_session
    except ImportError:
        raise AskedWrongly(
            "a checkpoint on S3 needs the package botocore, which commits with conditional puts; "
            "install it with: pip install 'tidegate[s3]'"
        ) from None
    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "max_attempts": _TRIES},
        # Only Amazon's store has a host name for each bucket.
        s3={"addressing_style": "auto" if endpoint is None else "path"},
    )
    return get_session().create_client(
        "s3", endpoint_url=endpoint, region_name=region or "us-east-1", config=config
    )


def _refused(answer: dict[str, Any], address: Address, doing: str, told: str) -> StoreRefusal:
    error = answer.get("Error", {})
    code = str(error.get("Code", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    named = masked(str(address))
    if code in _NO_BUCKET:
        sentence = f"{named} does not exist; create it, or give another checkpoint"
    elif code in _BAD_KEYS:
        sentence = (
            f"the store does not accept the credentials for {named} ({code}); renew them in the "
            "environment, in the profile or in the role of the machine"
        )
    elif code in _DENIED:
        sentence = (
            f"these credentials have no permission for {doing} in {named} ({code}); allow "
            "s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject below the checkpoint, "
            "or use other credentials"
        )
    elif code in _ELSEWHERE or status == 301:
        known = f", but in '{error['Region']}'" if error.get("Region") else ""
        sentence = (
            f"{named} is not in the region '{address.region or 'us-east-1'}'{known}; set "
            "AWS_REGION to its region, or give it in the URL as ?region=..."
        )
    else:
        return StoreRefusal(f"{doing} in {named} failed ({told})", status, code)
    return NotAllowed(sentence, status, code)
