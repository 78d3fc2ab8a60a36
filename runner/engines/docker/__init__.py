"""Docker Engine behind the interface of :mod:`runner.engines.base`."""
