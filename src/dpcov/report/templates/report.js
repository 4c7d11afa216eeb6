"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const table = document.getElementById("column-table");
  if (table) {
    const body = table.tBodies[0];
    const lines = [...body.rows].map((row, i) => ({ row, column: data.columns[i] }));
    const search = document.getElementById("search");
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const { row, column } of lines) {
        row.hidden = !column.name.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      document.getElementById("found").textContent = wanted ? `${shown} of ${lines.length}` : "";
    });
    const value = (column, key) => (key === "name" ? column.name : (column[key].estimate ?? -Infinity));
    for (const button of table.querySelectorAll("thead button")) {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        for (const other of table.tHead.rows[0].cells) {
          if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        }
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const sorted = [...lines].sort((a, b) => {
          const x = value(a.column, button.dataset.key), y = value(b.column, button.dataset.key);
          return x < y ? -sign : x > y ? sign : 0;
        });
        body.append(...sorted.map((line) => line.row));
      });
    }
  }

  const picture = document.getElementById("heatmap-cells");
  if (picture) {
    const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const size = data.correlation.size;
    const cells = new DataView(bytes(data.correlation.values).buffer);
    const told = bytes(data.correlation.told);
    const reading = document.getElementById("reading");
    picture.ownerSVGElement.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * size);
      const row = Math.floor(((event.clientY - box.top) / box.height) * size);
      if (Math.min(row, column) < 0 || Math.max(row, column) >= size) return;
      const place = row * size + column;
      const steps = cells.getInt16(2 * place, true);
      const number = steps === -32768 ? "unknown" : (steps / 10000).toFixed(3);
      const seen = (told[place >> 3] >> (7 - (place & 7))) & 1;
      const note = seen ? "" : ", below the noise";
      reading.textContent = `${data.columns[row].name} and ${data.columns[column].name}: ${number}${note}`;
    });
  }
})();
