"""Creates Lambda layer versions from the built layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import AssetHashType
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from duetime_cdk.layers.handler_import import MODULE

if TYPE_CHECKING:
    from duetime_cdk.layers.build import Layer, Layers
    from duetime_cdk.layers.target import Target


class LayerVersions(Construct):
    """The versions of our layers for every function, of the user's handlers, and of the list of task types."""

    def __init__(self, scope: Construct, id_: str, *, target: Target, layers: Layers) -> None:
        super().__init__(scope, id_)
        self.runtime = lambda_.Runtime(f"python{target.python}", lambda_.RuntimeFamily.PYTHON)
        self.architecture = (
            lambda_.Architecture.ARM_64 if target.architecture == "arm64" else lambda_.Architecture.X86_64
        )
        self.own = [self._version("Dependencies", layers.dependencies), self._version("Duetime", layers.duetime)]
        # The handlers' layer comes last, so that its packages can add data that our layers leave out.
        self.with_handlers = [*self.own, self._version("Handlers", layers.handlers)]
        types = [self._version("Types", layers.types)] if layers.types else []
        self.with_types = [*self.own, *types]
        """The layers for functions that create tasks."""
        # The list of types also tells the worker which phases the handlers of other packages have.
        self.with_handlers = [*self.with_handlers, *(types if layers.packages else [])]
        self.of_packages = {
            name: [*self.own, self._version(f"Handlers-{name}", layer)] for name, layer in layers.packages.items()
        }
        """The layers for each package's function, by the package's name."""
        self.types_module = MODULE if layers.types else ""

    def settings(self, function: str, layer: Layer) -> lambda_.LayerVersion:
        """A layer with the variables of one function that are too large for its environment."""
        return self._version(f"Settings-{function}", layer)

    def _version(self, id_: str, layer: Layer) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            id_,
            # The hash of the layer's inputs serves as the asset's hash, because it is already known and the same on
            # every machine.
            code=lambda_.Code.from_asset(
                str(layer.folder), asset_hash=layer.fingerprint, asset_hash_type=AssetHashType.CUSTOM
            ),
            compatible_runtimes=[self.runtime],
            compatible_architectures=[self.architecture],
        )
