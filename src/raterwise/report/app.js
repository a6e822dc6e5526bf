"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = new Map();
  // Nothing is ever loaded: a chart holds its data.
  const loader = { load: () => Promise.reject(new Error("loading is off")),
                   sanitize: () => Promise.reject(new Error("loading is off")) };

  // What the pointer is on, as text: names come from outside.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const point = (handler, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...rows.map(([name, shown]) => {
      const row = document.createElement("div");
      const label = document.createElement("span");
      label.textContent = name ? `${name}: ` : "";
      row.append(label, String(shown));
      return row;
    }));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - height - 8))}px`;
  };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // With `ast`, expressions are interpreted: the page's policy forbids making code of text.
  const made = (place, spec) => {
    if (window.vegaEmbed) {
      return vegaEmbed(place, spec, { mode: "vega", renderer: "svg", ast: true, actions: false,
                                      defaultStyle: false, tooltip: point, loader })
        .then(({ view }) => view);
    }
    const { parse, View, expr } = window.charts;
    const view = new View(parse(spec, null, { ast: true }), { expr, renderer: "svg", loader, container: place, hover: true });
    return view.tooltip(point).runAsync();
  };

  const draw = ([id, spec]) => {
    const place = document.getElementById(id);
    return made(place, spec).then((view) => {
      views.set(id, view);
      // The words of the chart are on its place; the drawing itself says nothing to a reader.
      place.querySelector("svg").setAttribute("aria-hidden", "true");
    });
  };

  const tell = (id, signal, value) => {
    const view = views.get(id);
    if (view) view.signal(signal, value).runAsync();
  };

  const chooseCurve = () => {
    for (const select of document.querySelectorAll("select[data-charts]")) {
      const chosen = select.parentElement.querySelector(".chosen"); // what paper has in its place
      const show = () => {
        select.dataset.charts.split(" ").forEach((id) => tell(id, "what", select.value));
        chosen.textContent = select.selectedOptions[0].textContent;
      };
      select.addEventListener("change", show);
      show(); // a browser may restore an earlier choice
    }
  };

  const percent = (x) => `${(100 * x).toFixed(0)}%`;
  const count = (x) => (Math.round(x * 10) / 10).toLocaleString("en");

  // The interval of the risk at threshold i, where there is one.
  const between = (table, i) => {
    if (!table.risk_low || table.risk_low[i] === null) return "";
    return ` [${(100 * table.risk_low[i]).toFixed(0)}–${(100 * table.risk_high[i]).toFixed(0)}]`;
  };

  const moveThreshold = () => {
    const slider = document.getElementById("threshold");
    const table = data.thresholds;
    if (!slider || !table) return;
    const show = () => {
      const wanted = Number(slider.value);
      let i = 0; // the first threshold is infinite: nothing is accepted
      while (i + 1 < table.thresholds.length && table.thresholds[i + 1] >= wanted - 1e-9) i += 1;
      for (const name of ["correct_accepts", "incorrect_accepts", "correct_rejects", "incorrect_rejects"]) {
        document.getElementById(name).textContent = count(table[name][i]);
      }
      const accepted = table.correct_accepts[i] + table.incorrect_accepts[i];
      const words = accepted > 0
        ? `${count(table.accepted_cases[i])} of ${count(table.cases)} ${table.unit} are accepted; of these predictions, ` +
          `${percent(table.incorrect_accepts[i] / accepted)} are wrong${between(table, i)}.`
        : "No case is accepted.";
      document.getElementById("operating-point").textContent = words;
      const from = table.of_shares ? percent(wanted) : String(Number(wanted.toPrecision(3)));
      document.getElementById("threshold-value").textContent = from;
      slider.setAttribute("aria-valuetext", `${from}. ${words}`);
      for (const id of ["ccc-chart", "risk-chart"]) tell(id, "point", i);
    };
    slider.addEventListener("input", show);
    show();
  };

  const decimals = (x) => {
    if (x !== 0 && Math.abs(x) < 0.0005) return x > 0 ? "<\u00a00.001" : ">\u00a0−0.001";
    return x.toFixed(3).replace("-", "−");
  };
  const at = (column, i) => column[column.length === 1 ? 0 : i]; // one value stands for all

  // A measure at the i-th threshold with its interval, as the page has it at first.
  const measured = (band, i) => {
    const [value, low, high] = band.map((column) => at(column, i));
    if (value === null) return "–";
    if (low !== null) return `${decimals(value)} [${decimals(low)}, ${decimals(high)}]`;
    return decimals(value) + (band[1].some((x) => x !== null) ? " [no interval]" : "");
  };

  const moveDecision = () => {
    const slider = document.getElementById("act-from");
    if (!slider || !data.operating) return;
    const choice = document.getElementById("looked-for");
    const show = () => {
      const wanted = Number(slider.value);
      const i = Math.round(100 * wanted) - 1; // the thresholds are the hundredths
      const curve = data.operating[choice ? choice.value : Object.keys(data.operating)[0]];
      for (const who of ["model", "raters"]) {
        for (const name of ["sensitivity", "specificity", "ppv", "npv", "net_benefit"]) {
          const cell = document.getElementById(`${who}-${name}`);
          if (cell) cell.textContent = curve[who] ? measured(curve[who][name], i) : "–";
        }
      }
      document.getElementById("all-net_benefit").textContent = decimals(curve.all[i]);
      const found = curve.prevalence * (at(curve.model.sensitivity[0], i) ?? 0);
      const alarms = (1 - curve.prevalence) * (1 - (at(curve.model.specificity[0], i) ?? 0));
      const per = (x) => (100 * x).toFixed(1);
      const words = `In 100 ratings: ${per(found)} positives found, ${per(alarms)} false alarms, ` +
        `${per(curve.prevalence - found)} positives missed.`;
      document.getElementById("decision-point").textContent = words;
      document.getElementById("act-from-value").textContent = percent(wanted);
      slider.setAttribute("aria-valuetext", `${percent(wanted)}. ${words}`);
      tell("decision-chart", "at", wanted);
      tell("roc-chart", "point", i + 1); // its first point is the threshold 0
    };
    slider.addEventListener("input", show);
    if (choice) choice.addEventListener("change", show);
    show();
  };

  Promise.all(Object.entries(data.charts).map(draw)).then(() => {
    chooseCurve();
    moveThreshold();
    moveDecision();
    document.documentElement.dataset.drawn = String(views.size);
  });
})();
