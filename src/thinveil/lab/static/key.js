// The key of the lab: it comes behind the # of the address, which no browser sends anywhere.

const NAME = "thinveil-lab-key";
let key = null;

/** Tell whether the address brings a key. */
export const brought = () => /^#key=[\w-]+$/.test(location.hash);

/** Take the key out of the address, or the one that this tab has kept; tell whether there is one. */
export function take() {
  if (brought()) {
    key = location.hash.slice("#key=".length);
    history.replaceState(null, "", location.pathname);
    try { sessionStorage.setItem(NAME, key); } catch { /* a browser that keeps nothing has it until the tab reloads */ }
  } else {
    try { key ??= sessionStorage.getItem(NAME); } catch { /* nothing was kept */ }
  }
  return key !== null;
}

/** Forget a key that is not of this lab. */
export function drop() {
  key = null;
  try { sessionStorage.removeItem(NAME); } catch { /* nothing was kept */ }
}

/** Ask the lab for something, with the key; a refusal has a status, a silence has none. */
export async function ask(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${key}` };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw Object.assign(new Error("The lab does not answer. Is thinveil lab still running in its terminal?"), { silent: true });
  }
  if (response.ok) return response;
  const plain = await response.json().catch(() => ({}));
  throw Object.assign(new Error(plain.error ?? `The lab answered ${response.status}.`), { status: response.status });
}
