"""The colours (Okabe and Ito's), the style sheet and the template of all pages."""

BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#555555",
)

LIGHT = """
:root { color-scheme: light; --ink: #1a1a1a; --faint: #555; --paper: #fff; --rule: #ddd;
  --box: #f4f6f8; --behind: #fdeee3; --late: #b34700; --good: #007a58; }
"""
"""The colours of a page that is always light, such as one that may be printed."""
PARTS = """
h1 { font-size: 1.5rem; margin: 0 0 .6rem; }
h2 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr));
  gap: .5rem 1.5rem; margin: 0 0 1rem; }
dl.figures div { display: flex; flex-direction: column; justify-content: flex-end; }
dl.figures dt { color: var(--faint); font-size: .85rem; }
dl.figures dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
figure { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--rule); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
"""
"""How headings, figures and tables look, whatever the colours."""
BODY = """
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1180px; margin: 0 auto; padding: 1.2rem; }
"""
STYLE = LIGHT + BODY + PARTS
TEMPLATE = """
{% block postamble %}<style>{{ style }}</style>{% endblock %}
{% block contents %}<main>{{ above }}
<figure role="group" aria-label="{{ label }}">{{ super() }}</figure>
{{ below }}</main>{% endblock %}
"""
