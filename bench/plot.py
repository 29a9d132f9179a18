"""plot.py - line plots as SVG text, without anything installed."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 80, 190, 34, 44
COLOURS = ("#0b5394", "#b45f06", "#38761d", "#741b47", "#444444")


def ticks(low, high, logarithmic):
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return [10.0 ** n for n in range(first, last + 1)]
    step = 10.0 ** math.floor(math.log10((high - low) or 1))
    while (high - low) / step < 4:
        step /= 2
    first = math.floor(low / step)
    return [n * step for n in range(first, math.ceil(high / step) + 1)]


def text_of(value):
    for bound, suffix in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= bound:
            return f"{value / bound:g}{suffix}"
    return f"{value:g}"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Axis:
    def __init__(self, values, begin, end, logarithmic):
        self.log = logarithmic
        low, high = min(values), max(values)
        self.ticks = ticks(low if logarithmic else min(0, low), max(high, low + 1e-9), logarithmic)
        self.low, self.high = self.ticks[0], self.ticks[-1]
        self.begin, self.end = begin, end

    def place(self, value):
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.begin + (value - low) / ((high - low) or 1) * (self.end - self.begin)


def plot(title, x_title, y_title, series, logarithmic=(False, False)):
    """An SVG group of one plot; series: [(name, [(x, y), ...]), ...]."""
    series = [(name, [(x, y) for x, y in points if (x > 0 or not logarithmic[0]) and
                      (y > 0 or not logarithmic[1])]) for name, points in series]
    series = [(name, points) for name, points in series if points]
    x_axis = Axis([x for _, points in series for x, _ in points], LEFT, WIDTH - RIGHT,
                  logarithmic[0])
    y_axis = Axis([y for _, points in series for _, y in points], HEIGHT - BOTTOM, TOP,
                  logarithmic[1])
    out = [f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
           f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
           f'{escape(x_title)}</text>',
           f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
           f'text-anchor="middle">{escape(y_title)}</text>']
    for value in x_axis.ticks:
        x = x_axis.place(value)
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">'
                   f'{text_of(value)}</text>')
    for value in y_axis.ticks:
        y = y_axis.place(value)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
                   f'{text_of(value)}</text>')
    for i, (name, points) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        path = "L".join(f"{x_axis.place(x):.1f} {y_axis.place(y):.1f}" for x, y in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if len(points) <= 32:
            out += [f'<circle cx="{x_axis.place(x):.1f}" cy="{y_axis.place(y):.1f}" r="2.5" '
                    f'fill="{colour}"/>' for x, y in points]
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 12 + 17 * i}" fill="{colour}">'
                   f'{escape(name)}</text>')
    return "\n".join(out)


def page(plots):
    """A whole file: plots one below the other."""
    body = "\n".join(f'<g transform="translate(0 {i * HEIGHT})">\n{one}\n</g>'
                     for i, one in enumerate(plots))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{HEIGHT * len(plots)}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
