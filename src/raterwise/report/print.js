"use strict";
(() => {
  // Paper has everything open.
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) {
      folded.push(part);
      part.open = true;
    }
  });
  addEventListener("afterprint", () => folded.splice(0).forEach((part) => { part.open = false; }));
})();
