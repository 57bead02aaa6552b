// Elements, made and kept. Text only ever becomes text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: `h("p", {class: "note", text: "…"}, child, …)`; other keys are attributes. */
export function h(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

/** Make an element of SVG in the same way. */
export function svg(tag, options = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

function fill(element, {text, ...attributes}, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

/** Set the text of an element only if it differs, so that selections and screen readers keep it. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Make the children of `parent` those of `items`, in order, keeping the elements of known keys:
 * what is focused, selected or open stays so.
 */
export function sync(parent, items, {key, create, update}) {
  const kept = parent.slicewatch ?? new Map();
  const now = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const element = kept.get(name) ?? create(item);
    now.set(name, element);
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const [name, element] of kept) if (now.get(name) !== element) element.remove();
  parent.slicewatch = now;
}
