"""What a Spark session knows of HDFS, added to the URLs that are sent to tasks."""

from typing import Any

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly
from tidegate.spark.hdfs.address import is_hdfs, resolved


def known_to(session: SparkSession, url: str) -> str:
    """The URL as tasks can use it; one that is not on HDFS stays as it is.

    The session's Hadoop configuration has what the files in HADOOP_CONF_DIR say, and the settings
    `spark.hadoop.*` beside them.
    """
    if not is_hdfs(url):
        return url
    context: Any = session.sparkContext
    hadoop = context._jvm.org.apache.hadoop
    login = hadoop.security.UserGroupInformation
    if login.isSecurityEnabled():
        raise AskedWrongly(
            f"the checkpoint {url} is on an HDFS with Kerberos, which Tidegate cannot log in to; "
            "give a directory that all machines mount, with shared_checkpoint=True, or a store "
            "such as s3://..."
        )
    # Only this class reads hdfs-site.xml.
    configuration = hadoop.hdfs.HdfsConfiguration(context._jsc.hadoopConfiguration())
    return resolved(url, configuration.get, str(login.getCurrentUser().getShortUserName()))
