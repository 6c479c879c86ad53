"""Many simulated clusters in one block of memory, which NumPy looks at without a copy."""

import ctypes
import math

import numpy

from faasrl_env import library

FORMULATIONS = tuple(library.strings("sim_formulations"))
FIGURES = tuple(library.strings("sim_figure_names"))


def settings():
    """Every setting of an environment: name → (what it is, least, most)."""
    found = {}
    while option := library.sim.sim_option(len(found)):
        option = option.contents
        found[option.name.decode()] = (option.help.decode(), option.low, option.high)
    return found


def _pairs(values):
    """Names and values in turn, as sim_open takes them."""
    for name, value in values.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            yield name
            yield str(int(one)) if isinstance(one, bool) else str(one)


class _Handle:
    """Ends the simulation when nobody looks at it any more."""

    def __init__(self, formulation, values):
        error = library.Error()
        words = [word.encode() for word in _pairs(values)] + [None]
        array = (ctypes.c_char_p * len(words))(*words)
        self.pointer = library.sim.sim_open(formulation.encode(), array, ctypes.byref(error))
        if not self.pointer:
            raise ValueError(error.message.decode(errors="replace"))

    def __del__(self):
        if getattr(self, "pointer", None):
            library.sim.sim_free(self.pointer)


def _view(handle, address, dtype, shape):
    dtype = numpy.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return numpy.zeros(shape, dtype)
    memory = type("Memory", (ctypes.c_char * size,), {}).from_address(address)
    memory.owner = handle
    return numpy.frombuffer(memory, dtype).reshape(shape)


class Field:
    """One number that an agent sees: its name and range."""

    def __init__(self, field, others):
        wider = others if field.per_other else 1
        self.name = field.name.decode()
        self.low, self.high = field.low * wider, field.high * wider


class Dimension:
    """One choice of an action: its name and its options."""

    def __init__(self, dimension):
        self.name = dimension.name.decode()
        self.labels = tuple(dimension.labels[i].decode() for i in range(dimension.option_count))
        self.hold = len(self.labels) // 2


class Simulation:
    """``clusters`` × ``functions`` agents, advanced together.

    ``formulation`` is one of ``FORMULATIONS``; the rest are settings (see ``settings()``). A list
    sets several, as in ``trace=["poisson:rate=10", "rps:load.txt"]``.

    The arrays below are views of the simulator's own memory. Write options into ``actions``, call
    ``step()``, read the others. In a cluster whose episode is over (``truncated``) the next step
    begins the next episode instead.

    ============ ======= ==============================================
    observations float32 (clusters, functions, len(observation_fields))
    globals      float32 (clusters, functions, len(global_fields)), what only critics see
    actions      int32   (clusters, functions, len(dimensions)), option of each dimension
    rewards      float32 (clusters, functions)
    masks        uint8   (clusters, functions, all options in a row), 1: legal now
    present      uint8   (clusters, functions), 1: there is a function that awaits an action
    terminated   uint8   (clusters, functions), 1: the function has left
    truncated    uint8   (clusters, functions), 1: the episode is over
    figures      float64 (clusters, functions, len(FIGURES)), plain units
    ============ ======= ==============================================
    """

    def __init__(self, formulation="default", **values):
        self._handle = handle = _Handle(formulation, values)
        shape = library.sim.sim_shape(handle.pointer).contents
        block = library.sim.sim_block(handle.pointer).contents
        others = max(shape.functions - 1, 0)
        self.clusters, self.functions = shape.clusters, shape.functions
        self.observation_fields = [
            Field(shape.observation_fields[i], others) for i in range(shape.observation_size)
        ]
        self.global_fields = [Field(shape.global_fields[i], others) for i in range(shape.global_size)]
        self.dimensions = [Dimension(shape.dimensions[i]) for i in range(shape.action_size)]
        for name, dtype, *row in (
            ("observations", "f4", shape.observation_size),
            ("globals", "f4", shape.global_size),
            ("actions", "i4", shape.action_size),
            ("rewards", "f4"),
            ("masks", "u1", shape.mask_size),
            ("present", "u1"),
            ("terminated", "u1"),
            ("truncated", "u1"),
            ("figures", "f8", len(FIGURES)),
        ):
            rows = (shape.clusters, shape.functions, *row)
            setattr(self, name, _view(handle, getattr(block, name), dtype, rows))
        self.hold = numpy.array([dimension.hold for dimension in self.dimensions], "i4")
        self.actions[:] = self.hold

    def reset(self, seed):
        """Begins an episode in every cluster."""
        library.sim.sim_reset(self._handle.pointer, seed & (2**64 - 1))

    def step(self):
        """One decision interval in every cluster."""
        library.sim.sim_step(self._handle.pointer)

    def figures_of(self, cluster, function):
        """Figures of the last interval by name; None where there is nothing to tell."""
        row = self.figures[cluster, function].tolist()
        return {name: None if math.isnan(value) else value for name, value in zip(FIGURES, row)}

    def masks_of(self, cluster, function):
        """Legal options of each dimension by its name: 1 or 0 in the order of its labels."""
        row, found, at = self.masks[cluster, function], {}, 0
        for dimension in self.dimensions:
            found[dimension.name] = row[at : at + len(dimension.labels)].copy()
            at += len(dimension.labels)
        return found

    def text_of(self, cluster):
        """A table of one cluster for people."""
        lines = [
            f"{'function':>10} {'req/s':>8} {'p99 ms':>9} {'goal ms':>9} {'late':>6} "
            f"{'cpu used':>9} {'reserved':>9} {'replicas':>8} {'cpu':>7} {'reward':>8}"
        ]
        for i in range(self.functions):
            if not self.present[cluster, i]:
                lines.append(f"{i:>10} -")
                continue
            f = self.figures_of(cluster, i)
            latency = "-" if f["latency_ms"] is None else f"{f['latency_ms']:.1f}"
            lines.append(
                f"{i:>10} {f['requests_per_s']:>8.2f} {latency:>9} {f['goal_ms']:>9.1f} "
                f"{f['violation_ratio']:>6.1%} {f['cpu_used_cores']:>9.3f} "
                f"{f['cpu_reserved_cores']:>9.3f} {f['ready_replicas']:>3.0f}/{f['replicas']:<4.0f} "
                f"{f['cpu']:>7.0f} {self.rewards[cluster, i]:>8.3f}"
            )
        return "\n".join(lines) + "\n"
