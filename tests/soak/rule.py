"""Is a series flat? What `make soak` passes or fails by, without anything of where the series comes from."""
from statistics import fmean, median

WARM_UP = 0.25  # of the time: caches and pools fill

# What may be gained after the warm-up, by the line through all of it and from its first quarter to its last: the jitter of
# a heap that is given back at each pass, of connections that are opened anew.
BOUNDS = {"rss_mib": {"least": 0.5, "part": 0.02}, "descriptors": {"least": 2, "part": 0}}


def slope(points):
    """Of the line with the least squares, per second."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def after_warm_up(points):
    began, ended = points[0][0], points[-1][0]
    return [(x, y) for x, y in points if x >= began + WARM_UP * (ended - began)]


def judge(name, points):
    """Of (second, value) in order: what it gained, what it may, and whether it is flat. Less than before is never wrong."""
    kept = after_warm_up(points)
    if len(kept) < 16 or kept[-1][0] <= kept[0][0]:
        raise ValueError(f"{name}: {len(kept)} values after the warm-up are too few, 16 are needed")
    quarter, seconds = len(kept) // 4, kept[-1][0] - kept[0][0]
    first, last = (median(y for _, y in part) for part in (kept[:quarter], kept[-quarter:]))
    middle = median(y for _, y in kept)
    bound = max(BOUNDS[name]["least"], BOUNDS[name]["part"] * middle)
    line = slope(kept) * seconds
    return {"first": first, "last": last, "median": middle, "most": max(y for _, y in points), "by_line": line,
            "by_quarters": last - first, "bound": bound, "seconds": seconds,
            "flat": line <= bound and last - first <= bound}
