# SPDX-License-Identifier: Apache-2.0
"""Styles and script of a sweep's overview. The matrix is drawn as far as it is seen: rows have one height."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1d2129;--dim:#5d6673;--line:#d9dee5;--back:#fff;--band:#f5f7f9;--link:#1d5fbf;
--pass:#1a7f4b;--passing:#e4f3ea;--unsupported:#5d6673;--inconclusive:#8a5c00;--inconclusives:#fdf1d6;--diverged:#b3261e;
--diverges:#fbe3e1;--failed:#fff;--fails:#7f1d1d;--refused:#6b3fa0;--refuses:#efe6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa4b2;--line:#3a414c;--back:#16191e;--band:#20252c;--link:#7fb2ff;
--pass:#4cc38a;--passing:#17301f;--unsupported:#9aa4b2;--inconclusive:#e0b04c;--inconclusives:#3a2f14;--diverged:#ff8a80;
--diverges:#431f1c;--failed:#fff;--fails:#a8322a;--refused:#c9a6f5;--refuses:#32254a}}
*{box-sizing:border-box}
body{margin:0 auto;padding:20px 24px 48px;max-width:1500px;background:var(--back);color:var(--ink);font:14px/1.45 system-ui,sans-serif}
h1{font-size:20px;margin:0 0 2px}h2{font-size:15px;margin:28px 0 8px}
.dim{color:var(--dim)}a{color:var(--link)}
code{font:12.5px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.bar{display:flex;height:14px;border-radius:4px;overflow:hidden;background:var(--line);min-width:120px}
.bar i{display:block;min-width:2px;height:100%}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0 0}
.legend span::before{content:"";display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px;background:var(--key)}
.up{color:var(--diverged)}.down{color:var(--pass)}
table{border-collapse:collapse}
th,td{text-align:left;padding:4px 10px;border-bottom:1px solid var(--line);vertical-align:top}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{background:var(--band);font-weight:600;vertical-align:bottom}
.wide{overflow:auto;max-height:460px;border:1px solid var(--line);border-radius:6px}
.wide thead th{position:sticky;top:0;z-index:1}
.tools{display:flex;flex-wrap:wrap;gap:10px;align-items:center;margin:0 0 8px}
input,select{font:inherit;color:inherit;background:var(--back);border:1px solid var(--line);border-radius:5px;padding:4px 8px}
input[type=search]{width:260px;margin-left:4px}
#matrix{overflow:auto;max-height:72vh;border:1px solid var(--line);border-radius:6px}
#matrix table{border-collapse:separate;border-spacing:0}
#matrix td,#matrix th{height:28px;padding:0 10px;white-space:nowrap;vertical-align:middle}
#matrix td{border-bottom:1px solid var(--line)}
#matrix thead th{position:sticky;top:0;z-index:2;padding:0;border-bottom:1px solid var(--line)}
#matrix th:first-child,#matrix td:first-child{position:sticky;left:0;background:var(--back);z-index:1;width:340px;min-width:340px;
max-width:340px;overflow:hidden;text-overflow:ellipsis;border-right:1px solid var(--line)}
#matrix thead th:first-child{z-index:3;background:var(--band)}
#matrix td.v{padding:2px 3px;width:118px;min-width:118px;text-align:center}
#matrix td.v>*{display:block;border-radius:4px;font-size:12.5px;line-height:22px;text-decoration:none;
font-variant-numeric:tabular-nums}
#matrix td.v a{text-decoration:underline;text-underline-offset:2px}
th button{all:unset;box-sizing:border-box;cursor:pointer;padding:6px 10px;width:100%;max-width:180px;white-space:normal;overflow-wrap:anywhere}
th button:focus-visible,input:focus-visible,select:focus-visible,a:focus-visible{outline:2px solid var(--link);outline-offset:-2px}
th[aria-sort=ascending] button::after{content:" \\2191"}th[aria-sort=descending] button::after{content:" \\2193"}
#matrix thead th.v{width:118px;min-width:118px;text-align:center}#matrix thead th.v button{max-width:118px;padding:6px 4px;
font-size:12.5px;text-align:center}
.pass{color:var(--pass);background:var(--passing)}.unsupported{color:var(--unsupported)}
.inconclusive{color:var(--inconclusive);background:var(--inconclusives)}.diverged{color:var(--diverged);background:var(--diverges)}
.refused{color:var(--refused);background:var(--refuses)}
.error,.memory,.timeout,.crash{color:var(--failed);background:var(--fails)}
.tag{display:inline-block;border-radius:4px;padding:0 7px;white-space:nowrap}
#empty{padding:14px}
"""

# data: columns [label], verdicts [name], models [[name, verdict letters by column, seconds, {column: detail}]];
# a detail is [severity text, severity number, failing inputs, inputs, report, text, change].
SCRIPT = """
const data=JSON.parse(document.getElementById('data').textContent),box=document.getElementById('matrix'),ROW=29;
const head=box.querySelector('thead tr'),body=box.querySelector('tbody');
const find=document.getElementById('find'),show=document.getElementById('show'),count=document.getElementById('count');
let rows=data.models,sorted=null;
const rank=(model,at)=>model[1][at]==='.'?-1:parseInt(model[1][at],36);
const worst=model=>Math.max(...[...model[1]].map((_,at)=>rank(model,at)));
const severity=(model,at)=>(model[3][at]||[])[1]||0;
const make=(tag,text,kind)=>{const made=document.createElement(tag);if(text!==undefined)made.textContent=text;
if(kind)made.className=kind;return made};
function cell(model,at){const outer=make('td',undefined,'v'),value=rank(model,at);
if(value<0){outer.title='not in this sweep';return outer}
const name=data.verdicts[value],detail=model[3][at],report=detail&&detail[4];
const shown={pass:'pass',unsupported:'unsupported',inconclusive:'inconclusive'}[name];
let text=shown||(name==='diverged'?(detail&&detail[0])||'diverged':name);
if(detail&&detail[3]>1&&detail[2])text+=' \\u00b7 '+detail[2]+'/'+detail[3];
if(detail&&detail[6])text=(detail[6]>0?'\\u25b2 ':'\\u25bd ')+text;
const inner=make(report?'a':'span',text,name);if(report)inner.href=report;
inner.title=[data.columns[at],name+(detail&&detail[0]?', severity '+detail[0]:''),detail&&detail[3]>1?detail[2]+' of '+detail[3]+' inputs':'',
detail&&detail[6]?(detail[6]>0?'worse':'better')+' than in the last sweep':'',detail&&detail[5]].filter(Boolean).join('\\n');
outer.append(inner);return outer}
function line(model){const row=make('tr'),name=make('td',model[0]);name.title=model[0];row.append(name);
data.columns.forEach((_,at)=>row.append(cell(model,at)));row.append(make('td',model[2],'number'));return row}
let first=-1;
function draw(force){const from=Math.max(0,Math.floor(box.scrollTop/ROW)-15);
if(!force&&Math.abs(from-first)<8)return;first=from;const to=Math.min(rows.length,from+Math.ceil(box.clientHeight/ROW)+30);
const gap=size=>{const row=make('tr'),one=make('td');one.colSpan=data.columns.length+2;one.style.height=size+'px';one.style.padding=0;
one.style.border=0;row.append(one);return row};
body.replaceChildren();if(from)body.append(gap(from*ROW));
for(let at=from;at<to;at++)body.append(line(rows[at]));if(to<rows.length)body.append(gap((rows.length-to)*ROW))}
function choose(){const wanted=find.value.toLowerCase(),kind=show.value;
rows=data.models.filter(model=>(!wanted||model[0].toLowerCase().includes(wanted))&&(kind===''||
(kind==='failing'?worst(model)>1:kind==='worse'?Object.values(model[3]).some(one=>one[6]>0):
[...model[1]].includes(data.verdicts.indexOf(kind).toString(36)))));
if(sorted){const[at,down]=sorted,by=at<0?(a,b)=>a[0].localeCompare(b[0],undefined,{numeric:true}):
at===data.columns.length?(a,b)=>a[2]-b[2]:(a,b)=>rank(a,at)-rank(b,at)||severity(a,at)-severity(b,at);
rows=[...rows].sort((a,b)=>down?by(b,a):by(a,b))}
count.textContent=rows.length+' of '+data.models.length+' listed models';
document.getElementById('empty').hidden=rows.length>0;box.scrollTop=0;draw(true)}
function heading(text,at,kind){const outer=make('th',undefined,kind),button=make('button',text);outer.scope='col';
button.onclick=()=>{const down=outer.getAttribute('aria-sort')!=='descending'&&at>=0||outer.getAttribute('aria-sort')==='ascending';
head.querySelectorAll('th').forEach(other=>other.removeAttribute('aria-sort'));
outer.setAttribute('aria-sort',down?'descending':'ascending');sorted=[at,down];choose()};outer.append(button);head.append(outer)}
heading('model',-1);data.columns.forEach((text,at)=>heading(text,at,'v'));heading('seconds',data.columns.length,'number');
find.oninput=choose;show.onchange=choose;box.onscroll=()=>draw(false);window.onresize=()=>draw(true);choose();
"""
