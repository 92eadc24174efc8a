"""The words of the field as enums. Outcomes and reasons are never free strings."""

from __future__ import annotations

from enum import StrEnum


class Actor(StrEnum):
    """Who did something."""

    AGENT = "agent"
    USER = "user"  # the simulated user
    GRADER = "grader"
    REFERENCE = "reference"
    ENVIRONMENT = "environment"
    HARNESS = "harness"


class Phase(StrEnum):
    """When in a trial something happened."""

    SETUP = "setup"
    INTERACTION = "interaction"
    GRADING = "grading"
    REPLAY = "replay"


class StopReason(StrEnum):
    """Why the interaction ended."""

    FINISHED = "finished"
    TIME = "budget.time"
    TOKENS = "budget.tokens"
    STEPS = "budget.steps"
    COST = "budget.cost"
    SOLVER_ERROR = "solver_error"
    USER_ENDED = "user_ended"
    CANCELLED = "cancelled"
    INFRASTRUCTURE = "infrastructure"
    UNKNOWN = "unknown"  # of an imported record whose source does not say


class Outcome(StrEnum):
    """What a trial says about its task. A missing grade is `ungraded`, never `failed`."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"  # no grade exists, with the reason
    INVALID = "invalid"  # the evidence does not support a grade

    @property
    def graded(self) -> bool:
        return self in (Outcome.PASSED, Outcome.FAILED)


class Reason(StrEnum):
    """Why there is no grade, or a qualification of one. The part before the dot is the group."""

    # The trial could not be carried out.
    IMAGE_MISSING = "image.missing"
    IMAGE_MISMATCH = "image.mismatch"
    IMAGE_PLATFORM = "image.platform"
    SETUP_FAILED = "setup.failed"
    UNSUPPORTED = "task.unsupported"
    ENGINE_UNREACHABLE = "engine.unreachable"
    ENGINE_ERROR = "engine.error"
    CONTAINER_LOST = "engine.container_lost"
    NETWORK_POOL = "engine.network_pool"
    DISK_FULL = "engine.disk_full"
    NAME_CONFLICT = "engine.name_conflict"
    PROVIDER = "provider.unavailable"
    PROVIDER_REFUSED = "provider.refused"  # the service was there, and would not have what the solver sent
    HARNESS_ERROR = "harness.error"
    WATCHDOG = "harness.watchdog"
    # The solver's own end.
    SOLVER_ERROR = "solver.error"
    SOLVER_BROKE = "solver.broke_environment"  # failed: it left a container in which its tests cannot start
    CANCELLED = "cancelled"
    SPEND_UNKNOWN = "spend.unknown"  # under a token or cost budget, which then cannot be kept
    # The grader gave no usable verdict.
    GRADER_TIMEOUT = "grader.timeout"
    GRADER_CRASHED = "grader.crashed"
    GRADER_MEMORY = "grader.memory"
    VERDICT_MISSING = "verdict.missing"
    VERDICT_MALFORMED = "verdict.malformed"
    VERDICT_NOT_FINITE = "verdict.not_finite"
    VERDICT_EMPTY = "verdict.empty"
    VERDICT_CONFLICT = "verdict.conflict"
    VERDICT_TAMPERED = "verdict.tampered"
    ARTIFACT_TOO_LARGE = "artifact.too_large"
    ARTIFACT_NO_FILE = "artifact.no_file"  # a FIFO, socket, device or link out; with a grade this qualifies a fail
    # A recorded trial cannot be graded again.
    EVIDENCE_MISSING = "evidence.missing"  # what it would take was not kept
    EVIDENCE_DAMAGED = "evidence.damaged"  # what was kept is not what was sealed
    # What a limit did to the solver; with a grade this qualifies a fail.
    MEMORY_LIMIT = "limit.memory"
    DISK_LIMIT = "limit.disk"

    @property
    def infrastructure(self) -> bool:
        """Whether a new attempt may help: the fault is the machine's or a service's."""
        if self is Reason.PROVIDER_REFUSED:
            return False  # the same request would be refused again
        return self.value.partition(".")[0] in ("engine", "provider", "harness")


UNAVAILABLE_REASONS = frozenset(
    {Reason.IMAGE_MISSING, Reason.IMAGE_MISMATCH, Reason.IMAGE_PLATFORM, Reason.SETUP_FAILED, Reason.UNSUPPORTED}
)
"""The task cannot be carried out here, by any solver."""


class Network(StrEnum):
    """What a sandbox can reach."""

    NONE = "none"
    GATEWAY = "gateway"  # only the metering gateway of the run
    INTERNET = "internet"


class GradingEnvironment(StrEnum):
    """Where the grader runs: in the sealed container, or in a new one that gets the artifacts only."""

    SAME = "same"
    FRESH = "fresh"
