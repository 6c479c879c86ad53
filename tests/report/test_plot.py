"""The training curve in pixels: a PNG that anybody can read, and the same picture as the SVG."""
import re
import xml.etree.ElementTree as xml

import pytest

from png import Picture
from study import run

SVG = "{http://www.w3.org/2000/svg}"
SCALE = 2  # pixels of a unit


@pytest.fixture(scope="module")
def curve(tmp_path_factory):
    out = tmp_path_factory.mktemp("trained")
    done = run("train", "--set", "trace=poisson:rate=2,span=3600,demand=20", "--set", "nodes=0", "--set",
               "episode_steps=20", "--learn", "hidden=16", "--episodes", "12", "--seeds", "3", "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    data = (out / "curve.png").read_bytes()
    assert len(data) < 1_000_000
    return xml.parse(out / "curve.svg").getroot(), Picture(data)


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+\.?\d*", text)]


def points(text):
    n = numbers(text)
    return list(zip(n[::2], n[1::2]))


def rgb(text):
    return tuple(bytes.fromhex(text.lstrip("#")))


def lines(svg, width):
    return [(rgb(p.get("stroke")), points(p.get("d"))) for p in svg.iter(SVG + "path")
            if p.get("stroke-width") == width]


def test_both_have_the_same_size(curve):
    svg, picture = curve
    assert (picture.width, picture.height) == (SCALE * int(svg.get("width")), SCALE * int(svg.get("height")))


def test_lines_are_where_the_svg_has_them(curve):
    svg, picture = curve
    curves = lines(svg, "2")
    assert len(curves) == 3 and all(len(path) == 12 for _, path in curves)
    for colour, path in curves:
        for (x1, y1), (x2, y2) in zip(path, path[1:]):
            for share in (0, 0.25, 0.5, 0.75):
                x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
                assert picture[int(SCALE * x), int(SCALE * y)] == colour, (x, y)


def test_ticks_are_sharp(curve):
    svg, picture = curve
    ticks = [(colour, path) for colour, path in lines(svg, "1") if path[1] == (path[0][0], path[0][1] + 5)]
    assert len(ticks) > 6
    for colour, ((x, top), _) in ticks:
        left, y = int(SCALE * x) - 2, int(SCALE * top) + 5
        assert [picture[left + i, y] == colour for i in range(4)] == [False, True, True, False]


def test_bands_are_filled_and_nothing_beyond_them(curve):
    svg, picture = curve
    bands = [(rgb(p.get("fill")), float(p.get("fill-opacity")), points(p.get("points")))
             for p in svg.iter(SVG + "polygon")]
    paths = [path for _, path in lines(svg, "2")]
    assert len(bands) == len(paths) == 3
    looked_at = 0
    for (colour, opacity, corners), path in zip(bands, paths):
        tinted = tuple(round(255 + (c - 255) * opacity) for c in colour)
        for (x, high), (_, middle) in list(zip(corners, path))[1:-1]:
            if middle - high < 8:
                continue
            within = {picture[int(SCALE * x), int(SCALE * y)] for y in (high + 2, (high + middle) / 2)}
            beyond = {picture[int(SCALE * x), int(SCALE * (high - d))] for d in (8, 12)}
            assert tinted in within and tinted not in beyond
            looked_at += 1
    assert looked_at >= 5


def test_every_word_is_written(curve):
    svg, picture = curve
    texts = list(svg.iter(SVG + "text"))
    assert len(texts) > 20
    for text in texts:
        x, y = (SCALE * n for n in numbers(text.get("transform"))[:2])
        ink, reach = rgb(text.get("fill")), {"start": (0, 24), "middle": (-12, 12), "end": (-24, 0)}
        low, high = reach[text.get("text-anchor")]
        if "rotate" in text.get("transform"):
            drawn = picture.count(ink, x - 20, y - high, x + 4, y - low)
        else:
            drawn = picture.count(ink, x + low, y - 20, x + high, y + 4)
        assert drawn >= 8, text.text
