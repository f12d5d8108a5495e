"""Which devices SGLang's ranks take: tensor, pipeline and data parallelism, also of attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.runtimes.checks import check_devices
from engine.words import tr

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine


@dataclass(frozen=True, slots=True)
class Parallel:
    """How a deployment is spread."""

    replicas: int
    """Copies of the model, each on devices of its own."""
    attention_dp: int
    """Data-parallel ranks that share the devices: attention and its weights are theirs."""
    attention_tp: int
    """Ranks that share a KV head."""
    assumptions: tuple[str, ...] = ()

    @property
    def data_ranks(self) -> int:
        """Over how many schedulers requests are spread."""
        return self.replicas * self.attention_dp


def stage_sizes(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage: the last ones take what is left over, one each.

    Source:
        SGLang ``distributed/utils.py :: get_pp_indices``.
    """
    base, rest = divmod(layers, stages)
    return tuple(base + (stage >= stages - rest) for stage in range(stages))


def parallel(deployment: Deployment, machine: Machine) -> Parallel:
    """How ``deployment`` is spread over ``machine``.

    Under ``enable_dp_attention`` the data-parallel ranks share the devices of tensor parallelism.
    Where it is left open and there are no further devices for copies, that is what is meant.

    Raises:
        DeploymentError: too few devices, or sizes that don't go together.
    """
    tp, dp = deployment.tensor_parallel_size, deployment.data_parallel_size
    shared, assumed = deployment.enable_dp_attention, ()
    there = len(machine.slots)
    if shared is None:
        enough = deployment.ranks * dp <= there
        shared = dp > 1 and not enough and tp % dp == 0 and deployment.ranks <= there
        if shared:
            text = tr(
                "enable_dp_attention: {dp} data-parallel ranks share the {tp} devices."
            ).format(dp=dp, tp=tp)
            assumed = (text,)
    if not shared:
        check_devices(deployment, machine)
        return Parallel(dp, 1, tp)
    if tp % dp:
        message = tr("data_parallel_size {dp} has to divide tensor_parallel_size {tp}.").format(
            dp=dp, tp=tp
        )
        raise DeploymentError(message, field="data_parallel_size")
    check_devices(deployment.with_(data_parallel_size=1), machine)
    return Parallel(1, dp, tp // dp, assumed)
