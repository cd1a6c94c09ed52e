--  Records of Ada: arrays from 1 and from elsewhere, discriminants, packed arrays.
package Things is
   type Color is (Red, Green, Blue);
   type Grid is array (Color, 2 .. 5) of Short_Integer;
   type Cube is array (1 .. 2, 1 .. 3, 0 .. 4) of Integer;
   type Mat is record
      G : Grid;
      S : String (1 .. 10);
      L : Long_Integer;
      C : Cube;
      P : Positive;
   end record;
   type Dyn (Len : Natural) is record
      Data  : String (1 .. Len);
      After : Integer;
   end record;
   type Two (Len : Natural) is record
      One   : String (1 .. Len);
      Other : String (1 .. Len);
   end record;
   type Text is access String;
   type Holder is record
      Before : Character;
      T      : Text;
      After  : Character;
   end record;
   type Flags is array (0 .. 11) of Boolean;
   pragma Pack (Flags);
   type Small is new Integer range 0 .. 100;
   for Small'Size use 8;
   type Bits is record
      A : Boolean;
      F : Flags;
      B : Small;
      I : Integer range 0 .. 100;
   end record;
   for Bits use record
      A at 0 range 0 .. 0;
      F at 0 range 1 .. 12;
      B at 2 range 0 .. 7;
      I at 3 range 0 .. 6;
   end record;
   type Plain is record
      F : Flags;
      B : Small;
      L : Long_Integer;
   end record;
end Things;
