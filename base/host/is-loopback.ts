/** Whether a host's name or address always means this machine. An IPv6 address stands in brackets or not. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|\[::1\])$/.test(host);
}
