#!/usr/bin/env python3
"""What PyTorch says of the networks, losses and updates of pkg/rl, as rl_reference.h beside this file.

PyTorch is too large for `make test`, which reads the stored header. To make it anew:

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install torch numpy
    /tmp/reference/bin/python tests/unit/reference/rl_reference.py

All is computed in double precision, by autograd and torch.optim; nothing is shared with the C code but the
random numbers, whose generator stands here a second time."""
import math
from pathlib import Path

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
draw = np.random.default_rng(20260101)
out = []


def emit(name, values, kind="float"):
    values = np.asarray(values, dtype=float).ravel()
    words = [f"{int(v)}" if kind != "float" else f"{v:.9e}f" for v in values]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > 96:
            lines.append(line)
            line = "   "
        line += " " + word + ","
    out.append(f"static const {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};")


def rounded(array):
    """Numbers that a float holds exactly, so that both sides begin alike."""
    return torch.tensor(np.asarray(array, dtype=np.float32).astype(float))


def normal(*shape, scale=1.0):
    return rounded(draw.normal(size=shape) * scale)


# --- networks ---------------------------------------------------------------------------------------
def make_params(widths):
    return torch.cat([torch.cat([normal(a * b, scale=1 / math.sqrt(a)), normal(b, scale=0.3)])
                      for a, b in zip(widths, widths[1:])])


def forward(params, widths, x, activation):
    at = 0
    for layer, (a, b) in enumerate(zip(widths, widths[1:])):
        weights = params[at:at + a * b].reshape(a, b)
        x = torch.nn.functional.linear(x, weights.T, params[at + a * b:at + a * b + b])
        at += a * b + b
        if layer + 2 < len(widths):
            x = activation(x)
    return x


def networks():
    widths = [5, 19, 11, 4]
    for name, activation in (("tanh", torch.tanh), ("relu", torch.relu)):
        params = make_params(widths).requires_grad_()
        inputs, d_outputs = normal(7, 5), normal(7, 4)
        outputs = forward(params, widths, inputs, activation)
        outputs.backward(d_outputs)
        for part, values in (("params", params.detach()), ("inputs", inputs), ("d_outputs", d_outputs),
                             ("outputs", outputs.detach()), ("gradient", params.grad)):
            emit(f"ref_{name}_{part}", values)


# --- Adam and clipping ------------------------------------------------------------------------------
def adam():
    begin, gradients = normal(9), normal(4, 9)
    params = begin.clone().requires_grad_()
    optimiser = torch.optim.Adam([params], lr=0.01)
    after = []
    for gradient in gradients:
        params.grad = gradient.clone()
        optimiser.step()
        after.append(params.detach().clone())
    emit("ref_adam_begin", begin)
    emit("ref_adam_gradients", gradients)
    emit("ref_adam_after", torch.stack(after))
    params.grad = gradients[0].clone()
    norm = torch.nn.utils.clip_grad_norm_([params], 0.5)
    emit("ref_clip_norm", [norm])
    emit("ref_clip_after", params.grad)


# --- losses -----------------------------------------------------------------------------------------
HEADS = [3, 4]


def distributions(logits, mask):
    held = torch.where(mask, logits, torch.tensor(-math.inf))
    return [torch.distributions.Categorical(logits=part) for part in torch.split(held, HEADS, dim=-1)]


def log_p_and_entropy(logits, mask, actions):
    parts = distributions(logits, mask)
    log_p = sum(d.log_prob(actions[..., h]) for h, d in enumerate(parts))
    entropy = 0
    for d in parts:
        entropy = entropy - torch.where(d.probs > 0, d.probs * torch.where(d.probs > 0, d.logits, 0.0), 0.0).sum(-1)
    return log_p, entropy


def policy_terms(log_p, old_log_p, advantage, clip):
    ratio = torch.exp(log_p - old_log_p)
    loss = -torch.min(ratio * advantage, torch.clamp(ratio, 1 - clip, 1 + clip) * advantage)
    return loss, (ratio - 1) - (log_p - old_log_p), (torch.abs(ratio - 1) > clip).double()


def value_terms(value, old, target, bound):
    loss = (value - target) ** 2
    if bound > 0:
        loss = torch.max(loss, (old + torch.clamp(value - old, -bound, bound) - target) ** 2)
    return loss


def draw_masks(count):
    masks = draw.random((count, sum(HEADS))) < 0.7
    masks[:, 0] = masks[:, HEADS[0] + 1] = True
    return torch.tensor(masks)


def draw_actions(masks):
    actions = []
    for mask in masks:
        parts = torch.split(mask, HEADS)
        actions.append([int(draw.choice(np.flatnonzero(part.numpy()))) for part in parts])
    return torch.tensor(actions)


def losses():
    n = 8
    logits, masks = normal(n, sum(HEADS)).requires_grad_(), draw_masks(n)
    actions = draw_actions(masks)
    log_p, entropy = log_p_and_entropy(logits, masks, actions)
    # ratios below, within and above the bounds, for advantages of both signs
    shift = rounded([-0.5, -0.5, -0.05, -0.05, 0.05, 0.05, 0.5, 0.5])
    old = rounded(log_p.detach() - shift)
    advantage = rounded([1.5, -0.7] * 4)
    loss, kl, clipped = policy_terms(log_p, old, advantage, 0.2)
    (loss - 0.02 * entropy).sum().backward()
    for part, values in (("logits", logits.detach()), ("old_log_p", old), ("advantages", advantage),
                         ("loss", loss.detach()), ("entropy", entropy.detach()), ("kl", kl.detach()),
                         ("clipped", clipped), ("d_logits", logits.grad)):
        emit(f"ref_policy_{part}", values)
    emit("ref_policy_masks", masks, "uint8_t")
    emit("ref_policy_actions", actions, "int32_t")

    logits.grad = None
    log_p, _ = log_p_and_entropy(logits, masks, actions)
    (-log_p).sum().backward()
    emit("ref_cross_loss", -log_p.detach())
    emit("ref_cross_d_logits", logits.grad)

    value, old, target = normal(12).requires_grad_(), normal(12), normal(12)
    loss = value_terms(value, old, target, 0.3)
    loss.sum().backward()
    for part, values in (("values", value.detach()), ("old", old), ("targets", target),
                         ("loss", loss.detach()), ("d_values", value.grad)):
        emit(f"ref_value_{part}", values)


# --- random numbers: xoshiro256++, seeded by splitmix64 ---------------------------------------------
M = (1 << 64) - 1


class Stream:
    def __init__(self, seed, number):
        _, first = self.mix(seed)
        state = first ^ (number * 0xd1342543de82ef95 & M)
        self.s = []
        for _ in range(4):
            state, z = self.mix(state)
            self.s.append(z)

    @staticmethod
    def mix(state):
        state = state + 0x9e3779b97f4a7c15 & M
        z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 & M
        z = (z ^ z >> 27) * 0x94d049bb133111eb & M
        return state, z ^ z >> 31

    def bits(self):
        s = self.s
        rotl = lambda x, k: (x << k | x >> 64 - k) & M
        result = rotl(s[0] + s[3] & M, 23) + s[0] & M
        t = s[1] << 17 & M
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def uniform(self):
        return (self.bits() >> 11) * 2.0 ** -53

    def below(self, n):
        return self.bits() * n >> 64


# --- two whole updates of PPO, with a central critic, masks, and rows that come and go ---------------
ROWS, HORIZON, UPDATES, OWN, GLOBAL, HIDDEN, SEED = 3, 6, 2, 5, 2, [8, 6], 42
GAMMA, LAMBDA, CLIP, BOUND, ENTROPY, WEIGHT, NORM = 0.9, 0.8, 0.1, 0.05, 0.02, 0.5, 0.4
EPOCHS, MINIBATCH, ACTOR_RATE, CRITIC_RATE, RATE_END = 3, 4, 0.01, 0.02, 0.5


class Script:
    """What the world shows before step t and what it gives for it, whatever is done."""

    def __init__(self):
        steps = HORIZON * UPDATES + 1
        self.own, self.globals = normal(steps, ROWS, OWN), normal(steps, ROWS, GLOBAL)
        self.masks = draw_masks(steps * ROWS).reshape(steps, ROWS, -1)
        self.rewards = normal(steps, ROWS)
        self.present = np.ones((steps, ROWS), dtype=bool)
        self.terminated, self.truncated = np.zeros_like(self.present), np.zeros_like(self.present)
        self.present[:2, 2] = self.present[9:, 0] = False
        self.terminated[4, 0] = self.terminated[9, 0] = True
        self.truncated[3, 1] = self.truncated[6, 1] = self.truncated[12, 2] = True

    def counts(self, t, row):
        return self.present[t, row] and not self.terminated[t, row] and not self.truncated[t, row]


def advantage_of(script, values, first, t, row):
    """The sum of discounted errors until the episode or the horizon ends, as the definition has it."""
    total, factor = 0.0, 1.0
    while True:
        following = 0.0 if script.terminated[t + 1, row] else values[t + 1, row]
        total += factor * (float(script.rewards[t + 1, row]) + GAMMA * following - values[t, row])
        factor *= GAMMA * LAMBDA
        over = script.terminated[t + 1, row] or script.truncated[t + 1, row]
        t += 1
        if over or t == first + HORIZON or not script.counts(t, row):
            return total


def ppo():
    script, stream = Script(), Stream(SEED, 0)
    actor_widths, critic_widths = [OWN, *HIDDEN, sum(HEADS)], [OWN + GLOBAL, *HIDDEN, 1]
    actor, critic = make_params(actor_widths).requires_grad_(), make_params(critic_widths).requires_grad_()
    emit("ref_ppo_actor", actor.detach())
    emit("ref_ppo_critic", critic.detach())
    for widths in (actor_widths, critic_widths):  # the weights that C begins with, 2 draws each
        for a, b in zip(widths, widths[1:]):
            for _ in range(2 * a * b):
                stream.bits()
    optimisers = [torch.optim.Adam([actor], lr=ACTOR_RATE), torch.optim.Adam([critic], lr=CRITIC_RATE)]
    everything = torch.cat([script.own, script.globals], dim=-1)
    actions = torch.zeros((HORIZON * UPDATES, ROWS, len(HEADS)), dtype=torch.long)
    old_log_p = torch.zeros((HORIZON * UPDATES, ROWS))
    reports = []
    for update in range(UPDATES):
        first = update * HORIZON
        for optimiser, rate in zip(optimisers, (ACTOR_RATE, CRITIC_RATE)):
            optimiser.param_groups[0]["lr"] = rate * (1 + (RATE_END - 1) * update / (UPDATES - 1))
        with torch.no_grad():
            for t in range(first, first + HORIZON):
                logits = forward(actor, actor_widths, script.own[t], torch.tanh)
                for row in range(ROWS):
                    parts = distributions(logits[row], script.masks[t, row])
                    for h, d in enumerate(parts):
                        actions[t, row, h] = int((torch.cumsum(d.probs, 0) <= stream.uniform()).sum())
                old_log_p[t], _ = log_p_and_entropy(logits, script.masks[t], actions[t])
            values = forward(critic, critic_widths, everything, torch.tanh)[..., 0].numpy()
        samples = [(t, row) for t in range(first, first + HORIZON) for row in range(ROWS)
                   if script.counts(t, row)]
        advantages = torch.tensor([advantage_of(script, values, first, t, row) for t, row in samples])
        old_values = torch.tensor([values[t, row] for t, row in samples])
        targets = advantages + old_values
        t_index, row_index = (torch.tensor(index) for index in zip(*samples))
        order, sums, seen = list(range(len(samples))), np.zeros(5), 0
        for _ in range(EPOCHS):
            for i in range(len(order), 1, -1):
                k = stream.below(i)
                order[i - 1], order[k] = order[k], order[i - 1]
            for at in range(0, len(order), MINIBATCH):
                batch = torch.tensor(order[at:at + MINIBATCH])
                t, row, a = t_index[batch], row_index[batch], advantages[batch]
                if len(batch) > 1:
                    a = (a - a.mean()) / (a.std() + 1e-8)
                logits = forward(actor, actor_widths, script.own[t, row], torch.tanh)
                log_p, entropy = log_p_and_entropy(logits, script.masks[t, row], actions[t, row])
                loss, kl, clipped = policy_terms(log_p, old_log_p[t, row], a, CLIP)
                value = forward(critic, critic_widths, everything[t, row], torch.tanh)[..., 0]
                miss = value_terms(value, old_values[batch], targets[batch], BOUND)
                sums += [float(x.detach().sum()) for x in (loss, miss, entropy, kl, clipped)]
                seen += len(batch)
                for optimiser, params, goal in zip(optimisers, (actor, critic),
                                                   ((loss - ENTROPY * entropy).mean(), WEIGHT * miss.mean())):
                    optimiser.zero_grad()
                    goal.backward()
                    torch.nn.utils.clip_grad_norm_([params], NORM)
                    optimiser.step()
        reports.append([*(sums / seen), seen])
    for part, values in (("observations", script.own), ("globals", script.globals), ("rewards", script.rewards),
                         ("reports", reports), ("actor_after", actor.detach()), ("critic_after", critic.detach())):
        emit(f"ref_ppo_{part}", values)
    for part, values in (("masks", script.masks), ("present", script.present),
                         ("terminated", script.terminated), ("truncated", script.truncated)):
        emit(f"ref_ppo_{part}", values, "uint8_t")
    emit("ref_ppo_actions", actions, "int32_t")


networks()
adam()
losses()
ppo()
header = "/* Made by rl_reference.py from PyTorch %s: see there. */\n/* clang-format off */\n#include <stdint.h>\n\n"
Path(__file__).with_suffix(".h").write_text(header % torch.__version__.split("+")[0] + "\n".join(out) + "\n")
