"""The store: what the archive and the event log say, in tables that can be asked questions.

It is derived: ``store = f(events, archive)``. Nothing writes to it but :meth:`runner.records.store.connect.Store.apply`,
and ``runner store rebuild`` makes the same store again from the files.
"""
