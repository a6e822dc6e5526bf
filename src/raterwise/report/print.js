"use strict";
(() => {
  // Paper has everything open, and the long tables of numbers behind charts at its end.
  const folded = [], moved = [];
  const end = document.createElement("section");
  end.id = "numbers";
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) {
      folded.push(part);
      part.open = true;
    }
    const heading = document.createElement("h2");
    heading.textContent = "The numbers behind the charts";
    end.replaceChildren(heading);
    for (const table of document.querySelectorAll("details.numbers")) {
      const title = document.createElement("h3"), place = document.createComment("");
      title.textContent = table.closest("section").querySelector("h2").textContent;
      table.replaceWith(place);
      moved.push([table, place]);
      end.append(title, table);
    }
    if (moved.length) document.querySelector("footer").before(end);
  });
  addEventListener("afterprint", () => {
    moved.splice(0).forEach(([table, place]) => place.replaceWith(table));
    end.remove();
    folded.splice(0).forEach((part) => { part.open = false; });
  });
})();
