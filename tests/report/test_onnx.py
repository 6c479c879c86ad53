"""mpactl checkpoint export: the ONNX file holds the weights of the checkpoint, joined as they should be. Both files are
read here by their descriptions alone; where onnxruntime is installed, it must come to the same outputs."""
import math
import random
import struct

import pytest

from protobuf import fields
from study import ROOT, run

WHOLE = ROOT / "tests/fuzz/corpus/checkpoint/whole"
TENSOR_FLOAT, TENSOR_INT64 = 1, 7


# --- the checkpoint, by docs/learning.md ---
class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def number(self):
        return self.take("I")[0]

    def text(self):
        return self.take(f"{self.number()}s")[0].decode()

    def many(self, read):
        return [read() for _ in range(self.number())]


def read_net(content):
    """Its name and [(inputs, outputs, weights, biases, activation)] of its layers."""
    name, (activation, inputs, outputs, hidden) = content.text(), content.take("IIII")
    widths, layers = [inputs, *content.take(f"{hidden}I"), outputs], []
    for i, (before, after) in enumerate(zip(widths, widths[1:])):
        weights, biases = content.take(f"{before * after}f"), content.take(f"{after}f")
        layers.append((before, after, weights, biases, None if i == hidden else ("Tanh", "Relu")[activation]))
    if content.number():
        content.take("Q")
        content.take(f"{2 * sum(len(w) + len(b) for _, _, w, b, _ in layers)}f")
    return name, layers


def read_checkpoint(path):
    content = Bytes(path.read_bytes()[52:])
    content.text(), content.take("QQQ")
    features, _, heads = (content.many(content.text) for _ in range(3))
    options = content.take(f"{len(heads)}I")
    content.many(lambda: (content.text(), content.text()))
    return features, dict(zip(heads, options)), dict(content.many(lambda: read_net(content)))


# --- ONNX, by onnx.proto ---
def words(values):
    return [value.decode() for value in values]


def read_tensor(data):
    tensor = fields(data)
    if tensor[2] == [TENSOR_INT64]:
        return tensor[8][0].decode(), tensor[1], tensor[7]
    assert tensor[2] == [TENSOR_FLOAT]
    return tensor[8][0].decode(), tensor[1], struct.unpack(f"<{math.prod(tensor[1])}f", tensor[9][0])


def read_port(data):
    """Its name and how wide its rows are."""
    port = fields(data)
    tensor = fields(fields(port[2][0])[1][0])
    assert tensor[1] == [TENSOR_FLOAT]
    batch, width = (fields(dim) for dim in fields(tensor[2][0])[1])
    assert batch[2] == [b"batch"]
    return port[1][0].decode(), width[1][0]


class Model:
    def __init__(self, data):
        model = fields(data)
        graph = fields(model[7][0])
        assert model[1] == [8] and fields(model[8][0]) == {2: [13]}
        self.metadata = dict(words((entry[1][0], entry[2][0])) for entry in map(fields, model[14]))
        self.tensors = {name: (dims, values) for name, dims, values in map(read_tensor, graph[5])}
        self.inputs, self.outputs = dict(map(read_port, graph[11])), dict(map(read_port, graph[12]))
        self.nodes = [fields(node) for node in graph[1]]

    def compute(self, row):
        known = {"observations": list(row)}
        for node in self.nodes:
            given, (kind,) = words(node[1]), words(node[4])
            results = getattr(self, kind.lower())(known[given[0]], *(self.tensors[name] for name in given[1:]))
            known.update(zip(words(node[2]), results))
        return {name: known[name] for name in self.outputs}

    @staticmethod
    def gemm(row, weights, biases):
        (inputs, outputs), values = weights
        assert (inputs, [outputs]) == (len(row), biases[0])
        return [[biases[1][k] + sum(row[i] * values[i * outputs + k] for i in range(inputs)) for k in range(outputs)]]

    @staticmethod
    def tanh(row):
        return [[math.tanh(x) for x in row]]

    @staticmethod
    def relu(row):
        return [[max(x, 0) for x in row]]

    @staticmethod
    def split(row, sizes):
        begins = [sum(sizes[1][:i]) for i in range(len(sizes[1]))]
        return [row[begin:begin + size] for begin, size in zip(begins, sizes[1])]

    @staticmethod
    def softmax(row):
        powers = [math.exp(x) for x in row]
        return [[p / sum(powers) for p in powers]]


# --- tests ---
def forward(layers, row):
    for before, after, weights, biases, activation in layers:
        row = [biases[k] + sum(row[i] * weights[i * after + k] for i in range(before)) for k in range(after)]
        row = [math.tanh(x) if activation == "Tanh" else max(x, 0) if activation else x for x in row]
    return row


def rows(width, count=20):
    draw = random.Random(1)
    return [[struct.unpack("f", struct.pack("f", draw.gauss(0, 1)))[0] for _ in range(width)] for _ in range(count)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("trained")
    done = run("train", "--set", "trace=poisson:rate=2,span=3600,demand=20", "--set", "nodes=0", "--set",
               "episode_steps=20", "--learn", "hidden=16x8", "--learn", "actor_rate=0.01", "--episodes", "10", "--out",
               out)
    assert done.returncode == 0, done.stderr.decode()
    return out / "seed-1.checkpoint"


def export(tmp_path, checkpoint, *argv):
    done = run("checkpoint", "export", checkpoint, "--onnx", tmp_path / "out.onnx", *argv)
    assert done.returncode == 0 and done.stdout == b"", done.stderr.decode()
    return tmp_path / "out.onnx"


@pytest.mark.parametrize("network", ["actor", "critic"])
def test_a_network_gives_what_the_checkpoint_s_does(tmp_path, trained, network):
    features, heads, nets = read_checkpoint(trained)
    model = Model(export(tmp_path, trained, "--network", network).read_bytes())
    layers = nets[network]
    assert model.inputs == {"observations": len(features)}
    assert model.outputs == {"outputs": sum(heads.values()) if network == "actor" else 1}
    assert [words(node[4])[0] for node in model.nodes] == ["Gemm", "Tanh", "Gemm", "Tanh", "Gemm"]
    for row in rows(len(features)):
        assert model.compute(row)["outputs"] == pytest.approx(forward(layers, row), rel=1e-12)
    assert model.metadata["features"] == ", ".join(features)
    assert model.metadata["actions"] == ", ".join(f"{name} {count}" for name, count in heads.items())
    assert (model.metadata["algorithm"], model.metadata["network"]) == ("simppo", network)


def test_chances_are_those_of_each_head(tmp_path):
    _, heads, nets = read_checkpoint(WHOLE)
    model = Model(export(tmp_path, WHOLE, "--chances").read_bytes())
    assert model.outputs == {"outputs": 5, "replicas_chances": 3, "cpu_chances": 2}
    assert [words(n[4])[0] for n in model.nodes] == ["Gemm", "Relu", "Gemm", "Split", "Softmax", "Softmax"]
    row = [0.3, -0.7]
    told, logits = model.compute(row), forward(nets["actor"], row)
    assert told["outputs"] == pytest.approx(logits)
    assert heads == {"replicas": 3, "cpu": 2}
    assert told["cpu_chances"][0] / told["cpu_chances"][1] == pytest.approx(math.exp(logits[3] - logits[4]))
    assert sum(told["replicas_chances"]) == pytest.approx(1)


@pytest.mark.parametrize("argv", [("--network", "actor"), ("--network", "critic"), ("--chances",)])
def test_onnxruntime_agrees(tmp_path, trained, argv):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    numpy = pytest.importorskip("numpy")
    path = export(tmp_path, trained, *argv)
    model, session = Model(path.read_bytes()), onnxruntime.InferenceSession(path)
    batch = rows(model.inputs["observations"])
    told = session.run(list(model.outputs), {"observations": numpy.array(batch, dtype=numpy.float32)})
    for name, values in zip(model.outputs, told):
        assert values == pytest.approx(numpy.array([model.compute(row)[name] for row in batch]), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("argv, status, says", [
    (["--onnx", "/nowhere/out.onnx"], 1, "/nowhere/out.onnx"),
    (["--onnx", "OUT", "--network", "actress"], 1, "--network actress: there is none: it has actor"),
    (["--onnx", "OUT", "--network", "critic", "--chances"], 1, "does not choose actions"),
    (["--network", "actor"], 2, "--onnx"),
    (["--onyx", "OUT"], 2, "onyx"),
])
def test_what_is_wrong_is_told(tmp_path, trained, argv, status, says):
    done = run("checkpoint", "export", trained, *(tmp_path / "out" if a == "OUT" else a for a in argv))
    assert (done.returncode, done.stdout) == (status, b"") and says in done.stderr.decode(), done.stderr
    assert not (tmp_path / "out").exists()


def test_no_checkpoint_is_told(tmp_path):
    done = run("checkpoint", "export", ROOT / "Makefile", "--onnx", tmp_path / "out")
    assert done.returncode == 1 and b"Makefile" in done.stderr
    assert run("checkpoint", "export").returncode == run("checkpoint").returncode == 2
