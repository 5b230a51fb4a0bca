// Builds elements. Text always becomes a text node, so that nothing a model wrote can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are null or false are left out, and `on` holds its listeners. */
export function el(tag, attributes, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function draw(tag, attributes, ...children) {
  return dress(document.createElementNS(SVG, tag), attributes, children);
}

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Draws what is inside of an element anew; a control that has the focus, by its `data-control`, has it again. */
export function keepFocus(node, work) {
  const focused = node.contains(document.activeElement) && document.activeElement.dataset.control;
  work();
  if (focused) node.querySelector(`[data-control="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

/** Changes a text only if it differs, so that a screen reader is not told the same thing twice. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
