// The look of the page: two hues, one for before and one for after, in a light and a dark dress.
#pragma once

#include <string_view>

namespace lissome {

inline constexpr std::string_view kReportStyle = R"css(
:root{--paper:#faf9f6;--ink:#1b2026;--soft:#5b6470;--line:#e2dfd6;--card:#fff;--before:#b3bac2;--after:#0f766e;--third:#b45309;--good:#0f766e;--bad:#b4232a;--wash:#e6f2f0}
@media (prefers-color-scheme:dark){:root{--paper:#12151a;--ink:#e9e7e2;--soft:#9fa8b3;--line:#2a3038;--card:#191d23;--before:#5d6772;--after:#2dd4bf;--third:#fbbf24;--good:#2dd4bf;--bad:#ff8f86;--wash:#14302d}}
*{box-sizing:border-box;min-width:0}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:anywhere}
main{max-width:1120px;margin:0 auto;padding:28px 16px 64px}
.brand{margin:0;color:var(--after);font-weight:700;letter-spacing:.06em}
h1{margin:.25em 0 1em;font-size:clamp(1.3rem,1.05rem + 1.4vw,2rem);line-height:1.25;font-weight:650;text-wrap:pretty}
h2{margin:2.4em 0 .5em;font-size:1.2rem}
h3{margin:0;font-size:1rem;font-weight:600}
p{margin:.3em 0 0}
code{font:.85em/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
small,.hint,.was,.key,figcaption{color:var(--soft)}
.hint,.was,.key,figcaption,small{font-size:.875rem;font-weight:400}
.key{margin:.4em 0 .6em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:12px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:12px 16px}
.tile h3{font-size:.875rem;color:var(--soft)}
.now{margin:.1em 0;font-size:1.6rem;line-height:1.25;font-weight:700;font-variant-numeric:tabular-nums;overflow-wrap:normal}
.was{margin:0}
.lead{background:var(--wash);border-color:transparent}
.lead .now{color:var(--after)}
.goals{list-style:none;padding:0;margin:0}
.goals>li{padding:8px 0;border-top:1px solid var(--line)}
.goals>li:first-child{border-top:0}
.goals b{display:inline-block;margin-right:.4em}
.met>b{color:var(--good)}.missed>b{color:var(--bad)}
.goals ul{margin:.3em 0 0;padding-left:1.2em;color:var(--soft)}
.step,.layer{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:6px 28px;padding:12px 0;border-top:1px solid var(--line)}
.step{padding-left:14px;border-left:4px solid var(--line)}
.step.kept{border-left-color:var(--good)}
.step:not(.kept) h3{color:var(--soft);font-weight:500}
.step i{font-style:normal;font-size:.75rem;font-weight:700;color:var(--soft);text-transform:uppercase;letter-spacing:.06em;margin-right:.4em}
.step.kept i{color:var(--good)}
.step.undone .bar.after span{opacity:.45}
.step.left{grid-template-columns:minmax(0,1fr)}
.step p{color:var(--soft);font-size:.9375rem}
.bar{display:flex;align-items:center;gap:8px;margin:3px 0;font-size:.875rem}
.bar span{flex:none;height:12px;border-radius:3px;width:calc((100% - 92px)*var(--share))}
.bar b{font-weight:500;white-space:nowrap;font-variant-numeric:tabular-nums}
.bar.before span,.swatch.before{background:var(--before)}
.bar.before b{color:var(--soft)}
.bar.after span,.swatch.after{background:var(--after)}
.bar.third span,.swatch.third{background:var(--third)}
.swatch{display:inline-block;width:12px;height:12px;border-radius:3px;margin:0 6px 0 14px;vertical-align:-1px}
.swatch:first-child{margin-left:0}
.where{color:var(--after);margin-right:.5em}
.line{color:var(--soft)}
@media (max-width:720px){.step,.layer{grid-template-columns:minmax(0,1fr)}main{padding-top:20px}}
figure{margin:0;display:grid;grid-template-columns:auto minmax(0,1fr);gap:4px 10px}
figcaption{grid-column:2;display:flex;justify-content:space-between}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:0 36px}
.charts svg{height:160px}
.rows{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9375rem;width:100%}
th,td{padding:6px 10px;border-top:1px solid var(--line);text-align:right;overflow-wrap:normal}
th{color:var(--soft);font-weight:500;border-top:0}
th:first-child,td:first-child{text-align:left}
.notes{margin:0;padding-left:1.2em}
.scale{display:flex;flex-direction:column;justify-content:space-between;font-size:.8rem;color:var(--soft);text-align:right;white-space:nowrap}
svg{width:100%;height:200px;background:var(--card);border:1px solid var(--line);border-radius:8px;display:block}
path{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
path.point{stroke-width:9;stroke-linecap:round}
path.before{stroke:var(--before)}path.after{stroke:var(--after)}path.third{stroke:var(--third)}
dl{display:grid;grid-template-columns:minmax(96px,auto) minmax(0,1fr);gap:8px 20px;margin:0}
dt{color:var(--soft)}dd{margin:0}
@media (max-width:520px){th,td{padding:5px 3px;font-size:.75rem}dl{grid-template-columns:minmax(0,1fr);gap:2px}dd{margin-bottom:10px}}
.command{display:block;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;white-space:pre-wrap}
details{margin-top:.3em;font-size:.9375rem}
summary{cursor:pointer;color:var(--soft)}
details ul{margin:.3em 0 0;padding-left:1.2em;color:var(--soft)}
)css";

}  // namespace lissome
