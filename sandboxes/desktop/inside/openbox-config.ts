/** What the window manager does. It has no key and no menu of its own: all belongs to the program on the screen. */

/**
 * Keys by which a browser would open a window with an address, a second tab, its tools or its settings, or end. Its managed policy
 * blocks what is behind most of them; without effect they also leave the screen as it is. In openbox's words: C is ctrl.
 */
const browserKeys = [
  ...["C-n", "C-S-n", "C-t", "C-S-t", "C-w", "C-S-w", "C-F4", "A-F4", "C-S-q"],
  ...["F12", "C-S-j", "C-S-i", "C-S-c", "C-u", "C-S-m", "S-Escape"],
  ...["C-o", "C-s", "C-p", "C-j", "C-h", "C-d", "C-S-d", "C-S-o", "C-S-a", "C-S-Delete"],
  ...["F1", "F10", "F11", "A-f", "A-e", "A-Home"],
];

export function openboxConfig(isBrowser: boolean): string {
  // BreakChroot is openbox's action without an effect: a key without an action would not be taken.
  const keys = isBrowser ? browserKeys.map((key) => `<keybind key="${key}"><action name="BreakChroot"/></keybind>`) : [];
  const press = (context: string, event: string, ...actions: string[]) =>
    `<context name="${context}"><mousebind button="Left" action="${event}">${actions.map((name) => `<action name="${name}"/>`).join("")}</mousebind></context>`;
  return [
    '<openbox_config xmlns="http://openbox.org/3.4/rc">',
    "<focus><focusNew>yes</focusNew><followMouse>no</followMouse></focus>",
    "<desktops><number>1</number></desktops>",
    `<keyboard>${keys.join("")}</keyboard>`,
    "<mouse>",
    press("Client", "Press", "Focus", "Raise"),
    press("Titlebar", "Drag", "Move"),
    press("Close", "Click", "Close"),
    "</mouse>",
    "</openbox_config>",
    "",
  ].join("\n");
}
