"""Lines over a common axis, two panels beside each other, as SVG."""
WIDTH, HEIGHT, LEFT, TOP, GAP, ROW = 330, 220, 60, 30, 80, 60


def panel(label, lines, most_x, left, top=TOP, dots=True):
    """A frame with the lines of a figure, colour to its points; both axes begin at zero."""
    most_y = max((y for line in lines.values() for _, y in line), default=1) * 1.1

    def at(x, y):
        return f"{left + x / most_x * WIDTH:.1f},{top + HEIGHT - y / most_y * HEIGHT:.1f}"

    out = [f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
           f'<text x="{left}" y="{top - 8}">{label}</text>']
    for part in (0, 0.5, 1):
        y = top + HEIGHT * (1 - part)
        out += [f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{most_y * part:.3g}</text>',
                f'<text x="{left + WIDTH * part:.0f}" y="{top + HEIGHT + 18}" text-anchor="middle">{most_x * part:,.0f}</text>']
    for color, line in lines.items():
        out.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="'
                   f'{" ".join(at(x, y) for x, y in line)}"/>')
        for x, y in line if dots else ():
            cx, cy = at(x, y).split(",")
            out.append(f'<circle cx="{cx}" cy="{cy}" r="3" fill="{color}"/>')
    return out


def svg(panels, most_x, names, axis, dots=True):
    """The panels, (label, lines) each; below them what the colours are, and the axis they share."""
    rows = -(-len(panels) // 2)
    width, height = LEFT * 2 + WIDTH * 2 + GAP, TOP + HEIGHT * rows + ROW * (rows - 1) + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for i, (label, lines) in enumerate(panels):
        out += panel(label, lines, most_x, LEFT + i % 2 * (WIDTH + GAP), TOP + i // 2 * (HEIGHT + ROW), dots)
    for i, (color, name) in enumerate(names.items()):
        out.append(f'<text x="{LEFT + i * 150}" y="{height - 8}" fill="{color}">{name}</text>')
    out.append(f'<text x="{width - LEFT}" y="{height - 8}" text-anchor="end">{axis}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
