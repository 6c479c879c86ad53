"""Actions as people and learners give them, and as options of the simulator."""

import gymnasium
import numpy


class Steps(gymnasium.spaces.Space):
    """A change of something: one of a few numbers, such as -128, 0 or 128."""

    def __init__(self, values, seed=None):
        self.values = tuple(values)
        super().__init__((), numpy.int64, seed)

    def sample(self, mask=None, probability=None):
        weights = mask if mask is not None else probability
        if weights is not None:
            weights = numpy.asarray(weights, float)
            weights = weights / weights.sum()
        return int(self.np_random.choice(self.values, p=weights))

    def contains(self, x):
        return bool(numpy.isscalar(x) or numpy.ndim(x) == 0) and x in self.values

    @property
    def is_np_flattenable(self):
        return False

    def __repr__(self):
        return f"Steps({', '.join(map(str, self.values))})"

    def __eq__(self, other):
        return isinstance(other, Steps) and self.values == other.values


class DictActions:
    """{"vertical": -128, "horizontal": 1}, as in MP3."""

    def __init__(self, dimensions):
        self.steps = {d.name: [int(label) for label in d.labels] for d in dimensions}
        self.space = gymnasium.spaces.Dict({name: Steps(v) for name, v in self.steps.items()})

    def options(self, action):
        if not self.space.contains(action):
            raise ValueError(f"action {action!r} is not known: must be one of {self.space}")
        return [steps.index(action[name]) for name, steps in self.steps.items()]


class MultiDiscreteActions:
    """The option of each dimension."""

    def __init__(self, dimensions):
        self.space = gymnasium.spaces.MultiDiscrete([len(d.labels) for d in dimensions])

    def options(self, action):
        return action


class DiscreteActions:
    """One number for all dimensions together, for learners that know nothing else."""

    def __init__(self, dimensions):
        self.sizes = tuple(len(d.labels) for d in dimensions)
        self.space = gymnasium.spaces.Discrete(int(numpy.prod(self.sizes)))

    def options(self, action):
        return numpy.unravel_index(int(action), self.sizes)


FORMS = {"dict": DictActions, "multidiscrete": MultiDiscreteActions, "discrete": DiscreteActions}


def make(form, formulation, dimensions):
    """The form by name; None: a dictionary for MP3, whose document says so, else MultiDiscrete."""
    form = form or ("dict" if formulation == "mp3" else "multidiscrete")
    if form not in FORMS:
        raise ValueError(f"action_form {form!r} is not known: must be one of {', '.join(FORMS)}")
    if form == "dict" and any("/" in label for d in dimensions for label in d.labels):
        raise ValueError("action_form 'dict' needs actions in steps: use multidiscrete or discrete")
    return FORMS[form](dimensions)


def box(fields):
    """The space of a row of fields."""
    return gymnasium.spaces.Box(
        numpy.array([field.low for field in fields], "f4"),
        numpy.array([field.high for field in fields], "f4"),
        dtype=numpy.float32,
    )
