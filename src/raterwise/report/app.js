"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = new Map();
  // Nothing is ever loaded: a chart holds its data.
  const loader = { load: () => Promise.reject(new Error("loading is off")),
                   sanitize: () => Promise.reject(new Error("loading is off")) };

  const draw = ([id, spec]) => {
    const place = document.getElementById(id);
    // With `ast`, expressions are interpreted: the page's policy forbids making code of text.
    const options = { mode: "vega", renderer: "svg", ast: true, actions: false, defaultStyle: false,
                      tooltip: { disableDefaultStyle: true }, loader };
    return vegaEmbed(place, spec, options).then(({ view }) => {
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
      const show = () => select.dataset.charts.split(" ").forEach((id) => tell(id, "what", select.value));
      select.addEventListener("change", show);
      show(); // a browser may restore an earlier choice
    }
  };

  const percent = (x) => `${(100 * x).toFixed(0)}\u00a0%`;
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

  const decimals = (x) => (Math.abs(x) < 0.0005 ? 0 : x).toFixed(3).replace("-", "−");

  // A measure at the i-th threshold with its interval, as the page has it at first.
  const measured = (band, i) => {
    const [value, low, high] = band.map((column) => column[i]);
    if (value === null) return "–";
    return low === null ? decimals(value) : `${decimals(value)} [${decimals(low)}, ${decimals(high)}]`;
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
      const found = curve.prevalence * (curve.model.sensitivity[0][i] ?? 0);
      const alarms = (1 - curve.prevalence) * (1 - (curve.model.specificity[0][i] ?? 0));
      const per = (x) => (100 * x).toFixed(1);
      const words = `Of 100 labels, ${per(found + alarms)} are of cases that test positive: ` +
        `${per(found)} rightly, ${per(alarms)} as false alarms; ` +
        `${per(curve.prevalence - found)} positives are missed.`;
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
