"""The S3 server of the tests of files, for those of data sets."""

from tests.io.conftest import credentials, server, store

__all__ = ["credentials", "server", "store"]
