"""What differs between the databases that the store can be kept in: all else is one SQL for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

    from runner.model.errors import PlatformError

# Who is alone at a database: whoever plans and records runs, and the work process, for as long as it decides requests.
Role = Literal["coordinator", "runner work"]
# The objects of a schema, by kind and name, each with its definition.
Objects = Mapping[tuple[str, str], str]
BUSY_SECONDS = 30  # how long somebody waits for whoever else writes


class Backend(Protocol):
    """A kind of database. ``reading``, ``supposing`` and ``writing`` are SQLAlchemy's options of a connection: whatever is read
    sees one unchanging state; what is supposed is rolled back, and may make temporary tables; whoever writes is alone at it."""

    reading: Mapping[str, Any]
    supposing: Mapping[str, Any]
    writing: Mapping[str, Any]

    def engine(self, url: URL) -> Engine:
        """The engine of a database, with the settings that each of its connections needs."""

    def writes_beside_readers(self, connection: Connection) -> bool:
        """Whether somebody can write while another reads."""

    def exists(self, url: URL) -> bool:
        """Whether there may be a store at ``url``, without connecting to it."""

    def schema(self, connection: Connection) -> str:
        """The schema in which the tables of the store are, as a name for SQL."""

    def objects(self, engine: Engine) -> tuple[Objects, Objects]:
        """Return what the schema of a new store holds, and what that of the store holds; nothing is changed."""

    def anew(self, connection: Connection) -> AbstractContextManager[None]:
        """Within, the tables are new and empty; after it they are the store's, and the old ones are gone with the transaction's end."""

    def is_rolled_back(self, error: BaseException) -> bool:
        """True if a transaction whose commit failed with this error certainly changed nothing."""

    def unusable(self, error: BaseException, engine: Engine | None) -> PlatformError:
        """The error (E306) for a database that cannot be used, in words for people."""

    def tell(self, connection: Connection) -> None:
        """Tell whoever waits in :meth:`changes` that the store is another one, once this transaction has ended."""

    def changes(self, engine: Engine) -> AbstractContextManager[Callable[[float], None]]:
        """A function that waits until somebody has written to the store, at most so many seconds."""

    def alone(self, engine: Engine, role: Role) -> AbstractContextManager[int]:
        """Be the only one in a role at the database, beside the lock file: the fencing number, for :meth:`check`. Raises E306."""

    def check(self, connection: Connection, role: Role, number: int) -> None:
        """Raise E306 when another has begun in that role after the one of this fencing number."""
