"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function axis(title, type) {
    return {
      title: { text: title, standoff: 14 }, type, automargin: true, showline: true, zeroline: false,
      gridcolor: colour("--line"), linecolor: colour("--line"), tickcolor: colour("--line"),
      ticks: "outside",
    };
  }

  function layout(figure, logarithmic) {
    return {
      paper_bgcolor: colour("--ground"), plot_bgcolor: colour("--ground"),
      font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 14 },
      margin: { l: 64, r: 16, t: 16, b: 56 }, showlegend: false, hovermode: "closest",
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), align: "left",
        font: { color: colour("--ink") } },
      xaxis: axis(figure.x + (logarithmic ? ", logarithmic" : ""), logarithmic ? "log" : "linear"),
      yaxis: axis(figure.y, "linear"),
      annotations: figure.watermark ? [{
        text: figure.watermark, xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false,
        font: { size: 26, color: colour("--faint") }, opacity: 0.35,
      }] : [],
    };
  }

  function traces(figure, hidden) {
    return figure.traces.map((trace) => {
      const ink = colour(trace.baseline ? "--faint" : `--c${trace.colour % 8}`);
      return {
        type: "scatter", mode: "lines+markers", name: trace.name, x: trace.x, y: trace.y,
        text: trace.text, hovertemplate: "%{text}<extra></extra>", cliponaxis: false,
        visible: hidden.has(trace.name) ? "legendonly" : true,
        line: { color: ink, width: trace.baseline ? 1.2 : 2.2, dash: trace.dash },
        marker: { color: ink, size: trace.size, symbol: trace.symbol },
        error_y: trace.spread ? { array: trace.spread, color: ink, thickness: 1, width: 3 }
          : undefined,
      };
    });
  }

  const drawn = figures.map((figure) => {
    const place = document.getElementById(figure.id);
    const hidden = new Set();
    let logarithmic = false;
    const draw = () => Plotly.react(place, traces(figure, hidden), layout(figure, logarithmic),
      { responsive: true, displaylogo: false,
        modeBarButtons: [["toImage", "zoom2d", "pan2d", "autoScale2d"]] });
    for (const button of document.querySelectorAll(`[data-curve="${figure.id}"]`)) {
      button.addEventListener("click", () => {
        const name = figure.traces[Number(button.dataset.trace)].name;
        if (!hidden.delete(name)) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      });
    }
    document.querySelector(`[data-log="${figure.id}"]`).addEventListener("click", (event) => {
      logarithmic = !logarithmic;
      event.currentTarget.setAttribute("aria-pressed", String(logarithmic));
      draw();
    });
    return draw;
  });
  const redraw = () => Promise.all(drawn.map((draw) => draw()));

  function value(row, column) {
    const cell = row.cells[column];
    const sort = cell.dataset.sort;
    return sort === undefined ? cell.textContent.trim() : sort === "" ? NaN : Number(sort);
  }

  function compare(a, b, column, sign) {
    const [left, right] = [value(a, column), value(b, column)];
    if (typeof left === "string" || typeof right === "string") {
      return sign * String(left).localeCompare(String(right));
    }
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return sign * (left - right);
  }

  for (const button of document.querySelectorAll("th button[data-column]")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const body = head.closest("table").tBodies[0];
      const upwards = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.closest("tr").querySelectorAll("th[aria-sort]")) {
        other.setAttribute("aria-sort", "none");
      }
      head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      const rows = [...body.rows];
      rows.sort((a, b) => compare(a, b, Number(button.dataset.column), upwards ? 1 : -1));
      body.append(...rows);
    });
  }

  document.getElementById("theme").addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    redraw();
  });
  dark.addEventListener("change", redraw);
  redraw().then(() => { root.dataset.ready = "yes"; });
})();
