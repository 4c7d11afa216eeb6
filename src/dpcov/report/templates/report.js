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
    const { size, order } = data.correlation;
    const cells = new DataView(bytes(data.correlation.values).buffer);
    const told = bytes(data.correlation.told);
    const reading = document.getElementById("reading");
    const value = (row, column) => {
      const place = row * size + column;
      const steps = cells.getInt16(2 * place, true);
      const seen = ((told[place >> 3] >> (7 - (place & 7))) & 1) === 1;
      return { number: steps === -32768 ? NaN : steps / 10000, seen };
    };
    const name = (column) => data.columns[column].name;
    const cell = (tag, text, kind) => {
      const made = document.createElement(tag);
      made.textContent = text;
      if (kind) made.className = kind;
      return made;
    };
    const pointed = (event) => {
      const box = picture.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * size);
      const row = Math.floor(((event.clientY - box.top) / box.height) * size);
      return Math.min(row, column) < 0 || Math.max(row, column) >= size ? null : [row, column];
    };
    const figure = picture.ownerSVGElement;
    const read = (event) => {
      const place = pointed(event);
      if (!place) return;
      const [row, column] = [order[place[0]], order[place[1]]];
      const { number, seen } = value(row, column);
      const note = seen ? "" : ", below the noise";
      const text = Number.isNaN(number) ? "unknown" : number.toFixed(3);
      reading.textContent = `${name(row)} and ${name(column)}: ${text}${note}`;
    };
    figure.addEventListener("pointermove", read);

    const closer = document.getElementById("closer");
    if (closer) {
      const around = 6;
      const near = (middle) => {
        const first = Math.max(0, Math.min(middle - around, size - 2 * around - 1));
        return order.slice(first, first + 2 * around + 1);
      };
      figure.addEventListener("click", (event) => {
        const place = pointed(event);
        if (!place) return;
        read(event);
        const [rows, columns] = place.map(near);
        const head = document.createElement("tr");
        head.append(cell("th", ""), ...columns.map((column) => cell("th", name(column))));
        const lines = rows.map((row) => {
          const line = document.createElement("tr");
          const numbers = columns.map((column) => {
            const { number, seen } = value(row, column);
            return cell("td", Number.isNaN(number) ? "?" : number.toFixed(2), seen ? "" : "hidden-cell");
          });
          line.append(cell("th", name(row)), ...numbers);
          return line;
        });
        const top = document.createElement("thead"), body = document.createElement("tbody");
        top.append(head);
        body.append(...lines);
        document.getElementById("closer-table").replaceChildren(top, body);
        closer.hidden = false;
      });
    }

    const chosen = document.getElementById("relations-of");
    if (chosen) {
      const body = document.getElementById("relations").tBodies[0];
      const note = document.getElementById("relations-note");
      const all = [...body.rows], words = note.textContent;
      chosen.addEventListener("change", () => {
        if (chosen.value === "") {
          body.replaceChildren(...all);
          note.textContent = words;
          return;
        }
        const row = Number(chosen.value);
        const found = [];
        for (let column = 0; column < size; column++) {
          const { number, seen } = value(row, column);
          if (column !== row && seen) found.push([column, number]);
        }
        found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
        body.replaceChildren(...found.slice(0, 40).map(([column, number]) => {
          const line = document.createElement("tr");
          line.append(cell("th", name(row)), cell("td", name(column), "text"), cell("td", number.toFixed(2)));
          return line;
        }));
        note.textContent = `${found.length} of ${size - 1} are told from zero.`;
      });
    }
  }
})();
