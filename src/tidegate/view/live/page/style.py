"""The style of the live page: light or dark as the visitor prefers, one column on a phone.

Text of Bokeh's charts takes its colours from the CSS variables that begin with `--bk-`.
"""

from tidegate.view.pages.style import PARTS

COLOURS = """
:root { color-scheme: light dark; --ink: #1a1a1a; --faint: #555; --paper: #fff; --rule: #ddd;
  --card: #fff; --box: #f4f6f8; --behind: #fdeee3; --late: #b34700; --good: #00664a;
  --late-back: #fdeee3; --good-back: #e3f5ee; --plain-back: #eef1f4; --link: #005b8f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --faint: #b0b4ba; --paper: #14161a; --rule: #3a3f47; --card: #1c1f24;
    --box: #262a31; --behind: #4a2f1c; --late: #ffb07a; --good: #6fe0b8; --late-back: #47230c;
    --good-back: #0c3528; --plain-back: #262a31; --link: #7cc4f5; }
}
:root { --bk-axis-label-text-color: var(--faint); --bk-major-label-text-color: var(--faint);
  --bk-axis-line-color: var(--rule); --bk-major-tick-line-color: var(--rule);
  --bk-minor-tick-line-color: transparent; --bk-grid-line-color: var(--rule);
  --bk-label-text-color: var(--ink); --bk-background-fill-color: transparent;
  --bk-border-fill-color: transparent; --bk-outline-line-color: transparent; }
"""
PAGE_STYLE = (
    COLOURS
    + """
* { box-sizing: border-box; }
html { background: var(--paper); }
.page { font: 15px/1.45 system-ui, sans-serif; color: var(--ink);
  padding: .8rem clamp(.6rem, 2vw, 1.6rem) 2rem; }
header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; }
h1 { font-size: 1.3rem; margin: 0; }
.kind { color: var(--faint); }
h2 { font-size: 1.05rem; margin: 0; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover, h2 a:focus-visible { text-decoration: underline; }
a { color: var(--link); }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: .8rem; margin-top: .6rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: .6rem .8rem; min-width: 0; overflow: hidden; }
section.wide { grid-column: 1 / -1; }
section.tall { grid-row: span 2; }
section > p { margin: 0 0 .2rem; color: var(--faint); font-size: .85rem; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; }
"""
)
PART_STYLE = (
    ":host { color: var(--ink); display: block; width: 100%; min-width: 0; }"
    ".bk-clearfix { display: block; width: 100%; font: 15px/1.45 system-ui, sans-serif; }"
    + PARTS
    + """
p { margin: .2rem 0; }
h2 { font-size: .95rem; margin: .6rem 0 .2rem; }
h3 { font-size: .95rem; margin: .8rem 0 .2rem; }
ul { margin: 0; padding-left: 1.2rem; }
a { color: var(--link); }
nav a { margin-right: .8rem; }
dl.figures { grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .3rem 1rem;
  margin: .5rem 0 0; }
dl.figures div { justify-content: flex-start; }
dl.figures dd { font-size: 1.5rem; line-height: 1.2; }
dl.figures small { font-size: .8rem; color: var(--faint); }
.state { font-size: 1.25rem; font-weight: 600; padding: .35rem .7rem; border-radius: 6px;
  background: var(--plain-back); }
.state.good { color: var(--good); background: var(--good-back); }
.state.late { color: var(--late); background: var(--late-back); }
.scroll { max-height: 26rem; overflow: auto; }
td, th { font-size: .9rem; padding-right: .6rem; }
@media (max-width: 40rem) {
  #log + .scroll thead { display: none; }
  #log + .scroll tr { display: block; padding: .3rem 0; border-bottom: 1px solid var(--rule); }
  #log + .scroll td { display: block; padding: 0; border: 0; }
}
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
"""
)
LEGEND_STYLE = ".bk-label { color: var(--ink) !important; }"
TEMPLATE = """
{% block preamble %}<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{{ page_style }}</style>{% endblock %}
{% block contents %}
<div class="page"><a class="skip" href="#main">Skip to the charts</a>
<header><span class="kind">Tidegate · {{ kind }}</span><h1>{{ heading }}</h1>
{{ embed(roots["nav"]) }}</header>
<main id="main">
{% for section in sections %}
<section id="{{ section.name }}" class="{{ section.shape }}"
 aria-labelledby="h-{{ section.name }}">
<h2 id="h-{{ section.name }}"><a href="{{ section.address }}">{{ section.title }}</a></h2>
{% if section.about %}<p>{{ section.about }}</p>{% endif %}
{{ embed(roots[section.name]) }}
</section>
{% endfor %}
</main></div>
{% endblock %}
"""
