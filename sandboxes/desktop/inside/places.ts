/** Where the programs of a desktop find each other, inside the service that shows it. */
export const display = ":1";
/** Memory: the screen's server draws into a file here. */
export const screenFolder = "/dev/shm/screen";
export const xSocket = "/tmp/.X11-unix/X1";
export const frameFile = `${screenFolder}/Xvfb_screen0`;
/** It is there as soon as the program on the screen shows something that rests. */
export const readyFile = `${screenFolder}/ready`;
/** HOME of all programs on the screen. */
export const desktopHome = "/srv/desktop";
