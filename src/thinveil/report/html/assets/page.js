// Draws the charts of the report. Colours are variables of the style sheet, so that light, dark
// and paper need no second drawing.
(() => {
  "use strict";
  const font = getComputedStyle(document.body).fontFamily;
  // The style of charts, from charts.json, which also draws them for files.
  const config = Object.assign("CONFIG", { background: "transparent", font });

  const draw = async (script) => {
    const place = document.getElementById(script.dataset.for);
    const spec = JSON.parse(script.textContent);
    const options = {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      config,
      tooltip: { theme: "custom" },
      ast: false,
    };
    await vegaEmbed(place, spec, options);
    for (const name of ["role", "aria-roledescription", "aria-label"]) place.removeAttribute(name);
    const svg = place.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", place.dataset.label);
    for (const part of svg.children) part.setAttribute("aria-hidden", "true");
  };

  const scripts = [...document.querySelectorAll('script[type="application/json"][data-for]')];
  Promise.allSettled(scripts.map(draw)).then((results) => {
    for (const [at, result] of results.entries()) {
      if (result.status === "fulfilled") continue;
      const place = document.getElementById(scripts[at].dataset.for);
      place.textContent = "This picture could not be drawn; the table below says the same.";
      console.error(result.reason);
    }
    document.documentElement.dataset.drawn = "yes";
  });

  // A table that is wider than the window says so above itself.
  const watch = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const hint = target.previousElementSibling;
      if (hint?.matches(".more")) hint.hidden = target.scrollWidth <= target.clientWidth + 1;
    }
  });
  for (const each of document.querySelectorAll(".wide")) watch.observe(each);

  // On paper nothing can be unfolded: short tables are printed, and folded again afterwards.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.short:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
})();
