// In and out: the packed code and data, the clipboard.

const $ = (id) => document.getElementById(id);

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

/** The bytes of a text in base 85: four for five characters, one less for each that is missing at the end. */
function bytesOf(text) {
  const value = new Map([...DIGITS].map((c, i) => [c, i]));
  const bytes = new Uint8Array(Math.ceil(text.length / 5) * 4);
  const view = new DataView(bytes.buffer);
  for (let at = 0, to = 0; at < text.length; at += 5, to += 4) {
    let sum = 0;
    for (let i = at; i < at + 5; i += 1) sum = sum * 85 + (value.get(text[i]) ?? 84);
    view.setUint32(to, sum);
  }
  return bytes.subarray(0, Math.floor(text.length * 4 / 5));
}

async function unpacked(id) {
  const stream = new Blob([bytesOf($(id).textContent.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function copy(button) {
  const source = $(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch { // not allowed here: select it, so that one key copies it
    getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 2000);
}
