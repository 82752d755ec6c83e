// Runs the packed code; the page's policy knows its hash.
unpacked("code").then((text) => {
  const script = document.createElement("script");
  script.textContent = text;
  document.body.append(script);
});
