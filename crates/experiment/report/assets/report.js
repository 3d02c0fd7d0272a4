"use strict";
// Tables that sort and plots that zoom. Text from the results is set by textContent or drawn on a canvas only.

// Okabe's and Ito's colours, which people with any colour vision tell apart; lines of one colour differ in their dashes.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const descends = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", descends ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const number = (text) => (text.trim() === "" ? NaN : Number(text));
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const [m, n] = [number(x), number(y)];
        // Cells without a number come after those with one.
        if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? 1 : -1;
        const order = Number.isNaN(m) ? x.localeCompare(y, undefined, { numeric: true }) : m - n;
        return descends ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

function drawn(place, plot) {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = [style.getPropertyValue("--ink").trim(), style.getPropertyValue("--line").trim()];
  const width = () => Math.max(280, place.clientWidth);
  const axis = (label) => ({ label, stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } });
  const many = plot.lines.length > 60;
  const options = {
    width: width(),
    height: 300,
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.05 || 1] } },
    axes: [axis(plot.x), axis(plot.y)],
    legend: { show: !many, live: plot.lines.length <= 12 },
    series: [{ label: plot.x }].concat(plot.lines.map((one, index) => ({
      label: one.name,
      stroke: COLOURS[index % COLOURS.length],
      dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
      width: 1.5,
      points: { show: false },
      spanGaps: true,
      paths: plot.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }))),
  };
  place.replaceChildren();
  const chart = new uPlot(options, [plot.at].concat(plot.lines.map((one) => one.values)), place);
  new ResizeObserver(() => {
    if (Math.abs(chart.width - width()) > 1) chart.setSize({ width: width(), height: 300 });
  }).observe(place);
  return chart;
}

const plots = JSON.parse(document.getElementById("plots").textContent);
document.querySelectorAll("table.sorts").forEach(sortable);
const places = [...document.querySelectorAll("[data-plot]")];
let charts = [];
function drawAll() {
  charts.forEach((chart) => chart.destroy());
  charts = places.map((place) => drawn(place, plots[Number(place.dataset.plot)]));
}
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
