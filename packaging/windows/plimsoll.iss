; Inno Setup script: iscc /DVersion=1.2.3 packaging\windows\plimsoll.iss
; Installs for one user without administrator's rights, or for all where they are given.

[Setup]
AppId={{6B0D0B7C-6A52-4E0F-9C8C-2F7D3C1E5A11}
AppName=Plimsoll
AppVersion={#Version}
AppPublisher=The Plimsoll authors
DefaultDirName={autopf}\Plimsoll
DefaultGroupName=Plimsoll
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
ChangesAssociations=yes
ChangesEnvironment=yes
LicenseFile=..\..\LICENSE
OutputDir=..\..\dist
OutputBaseFilename=Plimsoll-{#Version}-setup
SetupIconFile=..\..\build\marks\plimsoll.ico
UninstallDisplayIcon={app}\plimsoll-window.exe
Compression=lzma2
SolidCompression=yes
WizardStyle=modern

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"
Name: "de"; MessagesFile: "compiler:Languages\German.isl"

[Tasks]
Name: "path"; Description: "plimsoll.exe"; Flags: unchecked

[Files]
Source: "..\..\dist\plimsoll\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{autoprograms}\Plimsoll"; Filename: "{app}\plimsoll-window.exe"

[Registry]
Root: HKA; Subkey: "Software\Classes\.plimsoll"; ValueType: string; ValueData: "Plimsoll.Workspace"; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Plimsoll.Workspace"; ValueType: string; ValueData: "Plimsoll workspace"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\Plimsoll.Workspace\shell\open\command"; ValueType: string; ValueData: """{app}\plimsoll-window.exe"" ""%1"""
Root: HKCU; Subkey: "Environment"; ValueType: expandsz; ValueName: "Path"; ValueData: "{olddata};{app}"; Tasks: path; Check: NotThere

[Code]
function NotThere: Boolean;
var
  Before: string;
begin
  if not RegQueryStringValue(HKCU, 'Environment', 'Path', Before) then
    Before := '';
  Result := Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', ';' + Uppercase(Before) + ';') = 0;
end;
