/** The address of a server as the log, errors and `/health` may repeat it. */

/** What is wrong with it; null where nothing is. Never repeats the text, for a password may stand in it. */
export function whyNoEngineUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && (url.username !== "" || url.password !== ""))
    return "a user or a password in a URL would stand in logs and errors: give the server's key by api_key_env, the name of the variable that holds it";
  if (!url || !/^https?:$/.test(url.protocol)) return "give an http(s) URL such as http://127.0.0.1:8000";
  // Routes are appended to it.
  if (/[?#]/.test(text)) return "give the URL without a query or a fragment, such as http://127.0.0.1:8000";
  return null;
}
