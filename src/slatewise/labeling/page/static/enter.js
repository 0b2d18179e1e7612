// The door: send the token, and say so where it is wrong.

const form = document.getElementById("enter");
const wrong = document.getElementById("wrong");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.textContent = "";
  let reply;
  try {
    const body = new URLSearchParams({ token: document.getElementById("token").value.trim() });
    reply = await fetch("/enter", { method: "POST", body, redirect: "manual" });
  } catch {
    wrong.textContent = "The server does not answer. Try again in a moment.";
    return;
  }
  if (reply.type === "opaqueredirect" || reply.ok) location.assign("/");
  else if (reply.status === 429) wrong.textContent = `Too many wrong tokens. Try again in ${reply.headers.get("retry-after")} seconds.`;
  else wrong.textContent = "Nobody has this token. Look whether all of it was copied; it may also have been ended.";
});
