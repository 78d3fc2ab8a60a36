"""A front over the published pages of a project whose runs are scripted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runner.exchange.access import Token
from runner.exchange.published import Publisher
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from runner.work.requests import Requests
from tests.runner.execution.test_pool import World
from tests.worlds.browser import Watched
from tests.worlds.mini import Project
from tests.worlds.site import serving


@dataclass
class Site:
    """The site: its address, and a token of each team and of an organiser."""

    project: Project
    world: World
    teams: tuple[str, ...]
    tokens: dict[str, Token]
    url: str = ""

    def publish(self) -> None:
        """Publish all pages."""
        publisher, problems = Publisher(self.project.config.published), list[Exception]()
        Desk(self.world.store, self.world.tasks, publisher, problems.append).publish(self.teams)
        publisher.alive()
        assert problems == []

    def decide(self) -> None:
        """Decide the requests that came in."""
        with open_accounts(self.project.config) as accounts:
            Requests(self.project.config, self.world.store, accounts, lambda _: None).round(self.world.tasks)

    def sign_in(self, at: Watched, who: str) -> None:
        at.go("/sign-in")
        at.page.fill("#token", str(self.tokens[who]))
        at.follow("main button")


@contextmanager
def published(project: Project, world: World, *teams: str) -> Iterator[Site]:
    """Serve the pages of the world until the block ends."""
    with open_accounts(project.config) as accounts:
        tokens = {team: accounts.add("team", team)[1] for team in teams}
        tokens["organiser"] = accounts.add("organiser")[1]
        publish_access(project.config, accounts)
    site = Site(project, world, teams, tokens)
    site.publish()
    with serving(project.config.exchange, project.home / "front") as site.url:
        yield site
    world.close()
