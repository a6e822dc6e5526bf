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
      document.getElementById("threshold-value").textContent = percent(wanted);
      slider.setAttribute("aria-valuetext", `${percent(wanted)}. ${words}`);
      for (const id of ["ccc-chart", "risk-chart"]) tell(id, "point", i);
    };
    slider.addEventListener("input", show);
    show();
  };

  Promise.all(Object.entries(data.charts).map(draw)).then(() => {
    chooseCurve();
    moveThreshold();
    document.documentElement.dataset.drawn = String(views.size);
  });
})();
