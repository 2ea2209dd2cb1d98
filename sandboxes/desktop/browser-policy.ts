/**
 * The managed policy of the browser on a task's screen. A browser is a way around the screen that needs no shell: its console,
 * an address or a file runs scripts in the page by the keyboard alone. So nothing opens but what the task names.
 */
import type { Display } from "../../base/schema/environment/display.ts";

/** `*` stands for web pages and all else; the others are said by name, because not each of them is a page. */
const blocked = ["*", "javascript:*", "view-source:*", "chrome://*", "devtools://*", "file://*", "data:*", "filesystem:*"];

const off = {
  AllowFileSelectionDialogs: false,
  AutofillAddressEnabled: false,
  AutofillCreditCardEnabled: false,
  BackgroundModeEnabled: false,
  BookmarkBarEnabled: false,
  BrowserAddPersonEnabled: false,
  BrowserGuestModeEnabled: false,
  BrowserSignin: 0,
  CommandLineFlagSecurityWarningsEnabled: false,
  ComponentUpdatesEnabled: false,
  DefaultNotificationsSetting: 2,
  DefaultSearchProviderEnabled: false,
  DownloadRestrictions: 3,
  EditBookmarksEnabled: false,
  ExtensionInstallBlocklist: ["*"],
  IncognitoModeAvailability: 1,
  MetricsReportingEnabled: false,
  PasswordManagerEnabled: false,
  PrintingEnabled: false,
  SearchSuggestEnabled: false,
  SpellcheckEnabled: false,
  SyncDisabled: true,
  TaskManagerEndProcessEnabled: false,
  TranslateEnabled: false,
};

/** JSON. Playwright drives the browser by its tools for developers, so these are shut only where the agent has a keyboard. */
export function browserPolicy({ page, origins, tools }: Display): string {
  const own = page === undefined ? [] : [new URL(page).origin];
  const policy = {
    ...off,
    ...(tools !== "playwright" && { DeveloperToolsAvailability: 2 }),
    URLBlocklist: blocked,
    // A leading dot means this very host, and none below it.
    URLAllowlist: [...new Set([...own, ...origins])].sort().map((origin) => origin.replace("://", "://.")),
  };
  return `${JSON.stringify(policy, null, 2)}\n`;
}
