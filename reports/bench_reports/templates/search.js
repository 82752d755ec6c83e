// A field that hides the rows of a table without its words.

const field = document.querySelector("[type=search]");
field.parentElement.hidden = false;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelector("tbody").rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
