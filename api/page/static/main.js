// Starts what a view needs. Without scripts each view answers by itself: forms are plain forms.
import { connect } from "./answers.js";
import { connectFiles } from "./files.js";
import { connectBasket } from "./basket.js";

document.documentElement.classList.add("scripted");
const form = document.querySelector("#form[data-answers]");
if (form) {
  connect(form);
  connectFiles(form);
}
connectBasket(form);

for (const select of document.querySelectorAll("[data-vendors]")) {
  const options = [...document.querySelectorAll("#l-accelerators option")];
  const list = document.querySelector("#l-accelerators");
  select.addEventListener("change", () => {
    list.replaceChildren(
      ...options.filter((option) => !select.value || option.dataset.vendor === select.value),
    );
  });
}
