"""What `recbert benchmark serving` writes: JSON, tables, and the picture."""

import pathlib

import numpy as np

from keras_recbert.benchmark.load import PERCENTILES, all_failed
from keras_recbert.benchmark.serving_systems import OURS, PEER
from keras_recbert.benchmark.soak import MOST_RISE, SETTLED
from keras_recbert.core.folders import new_file
from keras_recbert.core.json_files import write_json
from keras_recbert.train.report_tables import escape, markdown_table, write_text

JSON, TABLE, PICTURE = "serving.json", "serving.md", "serving.png"
SERVERS = (
    "server",
    "requests a second",
    *(f"p{percentile}, ms" for percentile in PERCENTILES),
    "failed",
    "cores, server",
    "cores, load",
)


def save_report(output_dir, facts, systems):
    """Writes serving.json, serving.md and serving.png.

    Args:
        output_dir: path of a folder that is there.
        facts: dict of JSON: the model, options, the device, `agreement` and `soak`.
        systems: list of `serving_systems.System`.

    Returns:
        str, the tables and where the files are.
    """
    output_dir = pathlib.Path(output_dir)
    facts = {**facts, "rows": [row_of(one, facts["together"]) for one in systems]}
    facts["ratios"] = ratios_of(systems)
    write_json(output_dir / JSON, facts)
    page = page_of(facts)
    write_text(output_dir / TABLE, page)
    save_picture(output_dir / PICTURE, facts)
    return f"\n{page}\nEverything is in {output_dir}/ ({JSON}, {TABLE}, {PICTURE})."


def row_of(system, together):
    """What was measured of a system, as JSON; `rounds` has each round by itself.

    Args:
        system: `serving_systems.System`.
        together: int. Texts of a request that is compared with a call.
    """
    row = {
        "server": system.server_name,
        "direct": system.direct_name,
        "kind": system.kind,
        "precision": system.precision,
        "error": system.error,
        "versions": {name: v for name, v in system.versions.items() if v is not None},
        "failed": all_failed(system.turns),
        "requests": sum(turn.requests for turn in system.turns),
    }
    turns = {
        "requests_per_second": [turn.rate for turn in system.turns],
        **{
            f"p{percentile}_ms": [turn.latency[percentile] for turn in system.turns]
            for percentile in PERCENTILES
        },
        "server_cores": [turn.server_cores for turn in system.turns],
        "load_cores": [turn.load_cores for turn in system.turns],
        "others": [turn.others for turn in system.turns],
        "http_batch_ms": [1000 * one for one in system.together],
        "direct_batch_ms": [1000 * one for one in system.direct.get(together, ())],
        "direct_single_ms": [1000 * one for one in system.direct.get(1, ())],
    }
    pairs = zip(turns["http_batch_ms"], turns["direct_batch_ms"], strict=False)
    turns["overhead"] = [http / direct - 1 for http, direct in pairs]
    known = {name: own for name, own in turns.items() if own and None not in own}
    return {
        **row,
        **{name: spread(own) for name, own in known.items()},
        "rounds": turns,
    }


def ratios_of(systems):
    """Ours over the peer of the same precision, round by round.

    Returns:
        List of dict: `precision`, and of what was measured of both, spreads of
        `requests_per_second`, `p50`, `p95`, `p99`, and of `direct_single`, the texts a
        second without HTTP.
    """
    found = []
    for ours in (one for one in systems if one.kind == OURS):
        for peer in (one for one in systems if one.kind == PEER):
            if ours.precision != peer.precision:
                continue
            turns = list(zip(ours.turns, peer.turns, strict=False))
            single = zip(ours.direct.get(1, ()), peer.direct.get(1, ()), strict=False)
            ratios = {"requests_per_second": [own.rate / p.rate for own, p in turns]}
            for percentile in PERCENTILES:
                ratios[f"p{percentile}"] = [
                    own.latency[percentile] / p.latency[percentile] for own, p in turns
                ]
            ratios["direct_single"] = [theirs / own for own, theirs in single]
            spreads = {name: spread(own) for name, own in ratios.items() if own}
            found.append({"precision": ours.precision, **spreads})
    return found


def spread(values):
    """dict of the median, the least and the most of the rounds."""
    return {
        "median": float(np.median(values)),
        "least": float(min(values)),
        "most": float(max(values)),
    }


def page_of(facts):
    """The page of Markdown."""
    rows = facts["rows"]
    parts = [
        f"# {escape(pathlib.Path(facts['model']).name)}: served over HTTP\n\n"
        f"Figures are medians of {facts['rounds']} rounds (least–most), all systems in "
        f"turn on one machine. Both servers join the texts of requests: up to "
        f"{facts['max_batch_size']} a call, and the first waits "
        f"{facts['batch_timeout_ms']:g} ms for others. At most "
        f"{facts['num_batch_threads']} calls of the model run at a time, on "
        f"{facts['cores']} cores.\n\n"
        + "".join(f"- {line}\n" for line in (*facts["device"], *_versions(rows))),
        f"{facts['clients']} clients with a connection each, one text a request, "
        f"{facts['seconds']:g} s a turn. Cores: processor time taken in a second, of "
        f"{facts['cores']}; the load generator runs on the same machine.\n\n"
        + markdown_table(SERVERS, map(_server_line, _with(rows, "p50_ms"))),
        "".join(map(_ratio_line, facts["ratios"])),
        "".join(map(_agreement_line, facts["agreement"])),
        _overhead_part(facts, _with(rows, "overhead")),
        _single_part(facts["direct_texts"][1], _with(rows, "direct_single_ms")),
        _soak_part(facts["soak"]),
        "".join(
            f"- {name}: {row['error'].splitlines()[0]}\n"
            for row in rows
            if row["error"]
            for name in [row["server"]]
        ),
    ]
    return "\n".join(part for part in parts if part)


def _with(rows, name):
    return [row for row in rows if name in row]


def _versions(rows):
    for kind in (OURS, PEER):
        for row in [one for one in rows if one["kind"] == kind and one["versions"]][:1]:
            listed = ", ".join(f"{name} {v}" for name, v in row["versions"].items())
            yield f"{row['server'].rpartition(',')[0]}: {listed}"


def _server_line(row):
    cores = row.get("server_cores")
    return [
        row["server"],
        _range(row["requests_per_second"], ".1f"),
        *(_range(row[f"p{percentile}_ms"], ".1f") for percentile in PERCENTILES),
        f"{sum(row['failed'].values())} of "
        f"{row['requests'] + sum(row['failed'].values())}",
        None if cores is None else f"{cores['median']:.2f}",
        f"{row['load_cores']['median']:.2f}",
    ]


def _ratio_line(ratio):
    told = [
        f"{words} {_range(ratio[name], '.2f')}"
        for name, words in (
            ("requests_per_second", "requests a second"),
            ("p50", "p50"),
            ("p99", "p99"),
            ("direct_single", "texts a second one by one without HTTP"),
        )
        if name in ratio
    ]
    if not told:
        return ""
    return f"- ours over torch, {ratio['precision']}: {'; '.join(told)}\n"


def _agreement_line(one):
    return (
        f"- answers of both in {one['precision']} to {one['texts']:,} texts: scores "
        f"differ by at most {one['largest_difference']:.2g}, "
        f"{one['labels_that_differ']} labels differ\n"
    )


def _overhead_part(facts, rows):
    size = facts["together"]
    lines = [
        [
            row["direct"],
            _range(row["http_batch_ms"], ".2f"),
            _range(row["direct_batch_ms"], ".2f"),
            _range({k: 100 * v for k, v in row["overhead"].items()}, ".1f"),
        ]
        for row in rows
    ]
    header = ("model", "over HTTP, ms", "called directly, ms", "overhead, percent")
    return lines and (
        f"Requests of {size} texts, one after the other by one client, and calls of "
        f"the same {size}; {facts['direct_texts'][size]} texts.\n\n"
        + markdown_table(header, lines)
    )


def _single_part(num_texts, rows):
    lines = [
        [
            row["direct"],
            _range(row["direct_single_ms"], ".2f"),
            f"{1000 / row['direct_single_ms']['median']:.1f}",
        ]
        for row in rows
    ]
    return lines and (
        f"One text at a time, without HTTP; {num_texts} texts. The SavedModel has one "
        "thread, torch all cores.\n\n"
        + markdown_table(("model", "ms a text", "texts a second"), lines)
    )


def _soak_part(soak):
    if soak is None:
        return ""
    lines = [
        [
            f"{row['minute']:.1f}",
            row["requests"],
            sum(row["failed"].values()),
            *(_cell(row["milliseconds"].get(percentile)) for percentile in (50, 99)),
            None if row["rss_bytes"] is None else f"{row['rss_bytes'] / 1e6:.1f}",
        ]
        for row in soak["windows"]
    ]
    rise = soak["memory_rise"]
    if rise is None:
        verdict = f"Whether memory rises shows after {SETTLED} minutes.\n"
    else:
        rose = "more than" if rise > MOST_RISE else "not more than"
        verdict = (
            f"After the first {SETTLED} minutes memory rose by {100 * rise:.2f} "
            f"percent: {rose} {100 * MOST_RISE:g}.\n"
        )
    header = ("minute", "answers", "failed", "p50, ms", "p99, ms", "MB")
    return (
        f"{soak['system']}: {soak['requests_per_second']:.1f} requests a second at "
        f"random times.\n\n{markdown_table(header, lines, 0)}\n{verdict}"
    )


def _cell(milliseconds):
    return None if milliseconds is None else f"{milliseconds:.1f}"


def _range(values, form):
    middle, least, most = (
        format(values[key], form) for key in ("median", "least", "most")
    )
    return f"{middle} ({least}–{most})"


def save_picture(path, facts):
    """Draws percentiles of latency, and of a soak memory and p99 over time."""
    from matplotlib.figure import Figure

    soak = facts["soak"]
    panels = 1 if soak is None else 3
    figure = Figure(figsize=(7 * panels, 5), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    rows = _with(facts["rows"], "p50_ms")
    width = 0.8 / max(1, len(rows))
    for index, row in enumerate(rows):
        own = [row[f"p{percentile}_ms"] for percentile in PERCENTILES]
        middle = np.array([one["median"] for one in own])
        least, most = ([one[key] for one in own] for key in ("least", "most"))
        places = np.arange(len(own)) + (index - (len(rows) - 1) / 2) * width
        rate = row["requests_per_second"]["median"]
        axes[0].bar(
            places,
            middle,
            width,
            yerr=[middle - least, most - middle],
            capsize=2,
            label=f"{row['server']}: {rate:.0f} requests a second",
        )
    axes[0].set_xticks(range(len(PERCENTILES)), [f"p{one}" for one in PERCENTILES])
    axes[0].set(ylabel="ms", title=f"{facts['clients']} clients, one text a request")
    if rows:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    if soak is not None:
        minutes = [row["minute"] for row in soak["windows"]]
        values = {
            "memory, MB": [
                (row["rss_bytes"] or np.nan) / 1e6 for row in soak["windows"]
            ],
            "p99, ms": [row["milliseconds"].get(99, np.nan) for row in soak["windows"]],
        }
        for axis, (label, own) in zip(axes[1:], values.items(), strict=True):
            axis.plot(minutes, own, marker="o")
            axis.set(xlabel="minutes", ylabel=label, title=soak["system"])
            axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
    for axis in axes:
        axis.grid(alpha=0.3, axis="y")
    figure.suptitle(facts["device"][0], fontsize=10)
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")
