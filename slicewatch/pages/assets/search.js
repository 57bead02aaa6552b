// Shows what has all the words that are looked for, and says how much that is.
//
// search(input, status, {items, noun}) -> {apply()}: items() returns the elements; each is matched by
// its text. "/" goes to the box, Escape empties it. The words stay in the address, as #q=….

export function search(input, status, {items, noun}) {
  let told = "";
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    const all = items();
    for (const item of all) {
      const text = (item.dataset.search ?? "") + item.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word));
      item.hidden = !fits;
      shown += fits;
    }
    const said = words.length ? `${shown} of ${all.length} ${noun} shown` : "";
    if (said !== told) {
      told = said;
      status.textContent = said;
    }
  };
  input.addEventListener("input", () => {
    const place = input.value ? `#q=${encodeURIComponent(input.value)}` : location.pathname;
    history.replaceState(null, "", place);
    apply();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    input.value = "";
    input.dispatchEvent(new Event("input"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || isWriting(event.target)) return;
    event.preventDefault();
    input.focus();
  });
  const kept = location.hash.match(/^#q=(.*)$/);
  if (kept) input.value = decodeURIComponent(kept[1]);
  return {apply};
}

const isWriting = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
