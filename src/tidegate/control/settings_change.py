"""Settings that change while a pipeline runs: what changed, in words, for the record."""

from tidegate.control.assembly import Assembly
from tidegate.units import exact_duration


def settings_change(before: Assembly, after: Assembly) -> str:
    """What changed from one assembly to the other: `settings changed: target 2 s to 5 s`."""
    was, now = _words(before), _words(after)
    said = [f"{name} {was[name]} to {now[name]}" for name in now if was[name] != now[name]]
    if before.capacity != after.capacity:
        said.append("another capacity file" if after.capacity else "no capacity file")
    return f"settings changed: {', '.join(said) or 'nothing that can be seen'}"


def _words(assembly: Assembly) -> dict[str, str]:
    target, limits, latency = assembly.target, assembly.limits, assembly.latency
    return {
        "target": exact_duration(target.latency_s),
        "percentile": "mean" if target.percentile is None else f"p{target.percentile}",
        "cores": f"{assembly.bounds.least}-{assembly.bounds.most}",
        "policy": assembly.policy,
        "dry run": "on" if limits.dry_run else "off",
        "catch-up": exact_duration(latency.catch_up_s),
        "scale-in after": exact_duration(latency.scale_in_after_s),
        "time between changes": exact_duration(limits.t_ra_s) if limits.t_ra_s else "0 s",
        "excluded": "; ".join(map(str, limits.excluded)) or "nothing",
        "floors": "; ".join(map(str, limits.floors)) or "none",
    }
