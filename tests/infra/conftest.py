"""Fixtures that synthesize each environment's template once per session, with empty layers so that nothing is built."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, empty_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_cdk.layers.build import Layers

CLOUD = ("dev", "staging", "prod")
EVERY = (*CLOUD, "local")


@pytest.fixture(scope="session")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Layers:
    """Return empty layers."""
    return empty_layers(tmp_path_factory.mktemp("layers"))


@pytest.fixture(scope="session")
def synthesis_of(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Synthesis]:
    """Return a function that synthesizes the stack of an environment by name."""

    @cache
    def synthesised(name: str) -> Synthesis:
        return Synthesis(environment_named(name), layers, tmp_path_factory.mktemp(name))

    return synthesised


@pytest.fixture(params=EVERY)
def every(request: pytest.FixtureRequest, synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return each environment in turn."""
    return synthesis_of(request.param)


@pytest.fixture(params=CLOUD)
def cloud(request: pytest.FixtureRequest, synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return each environment for a real account in turn."""
    return synthesis_of(request.param)


@pytest.fixture
def dev(synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return the environment `dev`."""
    return synthesis_of("dev")


@pytest.fixture
def local(synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return the environment `local`, which has most optional parts."""
    return synthesis_of("local")
