// What every page does once it is read: the explorer, buttons that copy, and all of it open on paper.

function copyText(text) {
  const fallback = () => {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("copy"));
  };
  return navigator.clipboard ? navigator.clipboard.writeText(text).catch(fallback) : fallback();
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  const words = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await copyText(source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => (button.textContent = words), 1600);
  });
}

window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    details.open = true;
    details.dataset.printed = "";
  }
});
window.addEventListener("afterprint", () => {
  for (const details of document.querySelectorAll("details[data-printed]")) {
    details.open = false;
    delete details.dataset.printed;
  }
});

const island = document.getElementById("explorer-data");
if (island) {
  const root = document.getElementById("explorer");
  root.hidden = false;
  new Explorer(root, JSON.parse(island.textContent));
}
