// The look of the page: two hues, one for before and one for after, in a light and a dark dress.
#pragma once

#include <string_view>

namespace lissome {

inline constexpr std::string_view kReportStyle = R"css(
:root{--paper:#fbfaf7;--ink:#1d2229;--soft:#5d6673;--line:#dcd9d0;--card:#ffffff;--before:#9aa3ad;--after:#0f766e;--good:#0f766e;--bad:#b4232a}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8e6e1;--soft:#a0a8b2;--line:#2f353c;--card:#1b1f24;--before:#6b7580;--after:#2dd4bf;--good:#2dd4bf;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 16px 64px}
.brand{margin:0;color:var(--after);font-weight:700;letter-spacing:.04em}
h1{margin:.2em 0 1em;font-size:clamp(1.25rem,1rem + 1.6vw,2rem);line-height:1.25}
h2{margin:2.2em 0 .4em;font-size:1.25rem;border-bottom:1px solid var(--line);padding-bottom:.2em}
h3{margin:0;font-size:1rem}
code{font:.85em ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
small,.hint,.was,.key,figcaption{color:var(--soft)}
.hint{margin-top:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.tile h3{font-size:.85rem;color:var(--soft);font-weight:600}
.now{margin:.1em 0;font-size:1.5rem;font-weight:700}
.was{margin:0;font-size:.85rem}
.goals{padding-left:1.1em}
.met>b{color:var(--good)}.missed>b{color:var(--bad)}
.step{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--before);border-radius:8px;padding:10px 14px;margin:10px 0}
.step.kept{border-left-color:var(--good)}
.step i{font-style:normal;font-size:.8rem;font-weight:700;color:var(--soft);text-transform:uppercase;letter-spacing:.05em;margin-right:.4em}
.step.kept i{color:var(--good)}
.step p{margin:.3em 0 0;overflow-wrap:anywhere}
.step small{font-weight:400}
.bar{display:flex;align-items:center;gap:8px;margin:3px 0;font-size:.85rem}
.bar span{flex:none;height:12px;border-radius:3px;max-width:calc(100% - 84px)}
.bar b{font-weight:500;white-space:nowrap}
.bar.before span,.swatch.before{background:var(--before)}
.bar.after span,.swatch.after{background:var(--after)}
.swatch{display:inline-block;width:12px;height:12px;border-radius:3px;margin:0 6px 0 12px;vertical-align:-1px}
.layer{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,7fr);gap:4px 18px;padding:8px 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.layer .line{color:var(--soft)}
@media (max-width:640px){.layer{grid-template-columns:minmax(0,1fr)}}
figure{margin:0;display:grid;grid-template-columns:auto minmax(0,1fr);gap:4px 8px}
figcaption{grid-column:2;font-size:.85rem}
.scale{display:flex;flex-direction:column;justify-content:space-between;font-size:.8rem;color:var(--soft);text-align:right}
svg{width:100%;height:220px;background:var(--card);border:1px solid var(--line);border-radius:6px}
path{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
path.before{stroke:var(--before)}path.after{stroke:var(--after)}
dl{display:grid;grid-template-columns:minmax(90px,auto) minmax(0,1fr);gap:6px 18px;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.command{display:block;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 10px;white-space:pre-wrap}
summary{cursor:pointer;color:var(--soft)}
)css";

}  // namespace lissome
