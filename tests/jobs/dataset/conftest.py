"""Object stores, as the tests of io have them."""

from tests.io.conftest import credentials, server, store

__all__ = ["credentials", "server", "store"]
