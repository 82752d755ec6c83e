// Downloads: chart and ranking as displayed.

function savingOf(data, { set, view, section }, options) {
  const fileName = () => [data.run, set().name, view().metric, view().kind].map((w) => w.replace(/[^\w.@-]+/g, "_")).join("-");
  function download(text, type, ending) {
    const url = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
    const link = document.createElement("a");
    Object.assign(link, { href: url, download: `${fileName()}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    document.documentElement.dataset.saved = link.download;
  }
  function picture() {
    const title = `${set().name}: ${view().metric} against cost`;
    const subtitle = `test results of points chosen on validation${set().reference ? `; reference ${set().reference}` : ""}; run ${data.run}`;
    return chart(data, set(), view(), { ...options(), width: 900, title, subtitle }).svg;
  }
  return function save(ending) {
    if (ending === "svg") download(picture(), "image/svg+xml", "svg");
    else if (ending === "csv") download(csv([...section().querySelectorAll(".board")].find((t) => t.offsetParent)), "text/csv;charset=utf-8", "csv");
    else if (ending === "pdf") window.print();
    else {
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        canvas.width = 2 * image.width;
        canvas.height = 2 * image.height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => download(blob, "image/png", "png"), "image/png");
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture())}`;
    }
  };
}

function copy(button) {
  getSelection().selectAllChildren($(button.dataset.copy));
  document.execCommand("copy"); // unlike navigator.clipboard, also works for local files
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 2000);
}
